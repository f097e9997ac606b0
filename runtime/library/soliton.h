/* Soliton as a library: one model, opened once, whose tokens other programs generate. Plain C, and all that
 * libsoliton.so exports; soliton.hpp is the same for C++.
 *
 *   soliton_model     a model folder with its tokenizer, chat template, kernel, weights on the device, and the cache of
 *                     keys and values that all of its sessions and trees share
 *   soliton_session   answers to prompts, one after another
 *   soliton_tree      texts that branch, and are decoded together
 *
 * What has been fed once stays in the cache until others need the room, the least recently used first: the next turn of
 * a chat, a common system prompt and a fork cost what is new. Branches of a tree stay until they are pruned.
 *
 * Status and errors. Functions that can fail return a soliton_status, after anything but SOLITON_OK
 * soliton_last_error() says why, in one line. What fails has changed nothing, unless it says otherwise. Handles that
 * are null where one is needed are SOLITON_USAGE.
 *
 * Threads. Any thread may call any function with any handle, at the same time too: calls that need the device
 * (soliton_model_open(), soliton_generate(), soliton_tree_*()) wait for one another, whatever their model, while
 * soliton_tokenize(), soliton_detokenize(), soliton_render_chat() and soliton_cancel() never wait. Three things are the
 * caller's: a handle is closed once, when nothing else uses it any more; memory that is handed over lives until the
 * call returns; and what soliton_last_error() says is of the calling thread. Callbacks come in the thread of the call
 * that they belong to; from there, functions that would have to wait for that very call are refused (SOLITON_USAGE).
 * Sessions and trees keep their model open, so handles may be closed in any order. CUDA's current device is the
 * caller's again when a call returns; models of one process that use the same kernel library have to be on the same
 * device.
 *
 * A process. Nothing is written to stdout or stderr: see soliton_model_options.log. A handler of SIGBUS is set, for
 * files that are cut short while they are read; it leaves all else to the handler before it. No handle survives fork().
 *
 * ABI. Structs that the caller fills begin with their size, which says how much of them the caller knows; later
 * versions only add members at their ends. An enum may get further values. */
#ifndef SOLITON_H
#define SOLITON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a call ended; the numbers are the exit codes of the programs. */
typedef enum soliton_status {
  SOLITON_OK = 0,
  SOLITON_USAGE = 2,         /**< an argument, or an option by its name */
  SOLITON_NOT_FOUND = 3,     /**< a file or folder is missing, unreadable or not writable */
  SOLITON_BAD_FILE = 4,      /**< a file or a text is malformed, or says something that cannot be */
  SOLITON_MISMATCH = 5,      /**< model, kernel, card or tokens do not fit one another */
  SOLITON_DEVICE = 6,        /**< a CUDA call or the kernel failed: only closing the model makes sense now */
  SOLITON_OUT_OF_MEMORY = 7, /**< memory or another limit: context, cache, a buffer of the caller */
  SOLITON_MAKE_FAILED = 8,   /**< the compiler made no kernel; its output is in the file named */
  SOLITON_INTERNAL = 70      /**< a defect of ours */
} soliton_status;

/** Why the last call of this thread failed: one line of UTF-8 without its end; "" if none has. Valid until this thread's
 * next call that fails. */
const char* soliton_last_error(void);

/** "0.1.0". */
const char* soliton_version(void);

/* ---- Models */

typedef struct soliton_model soliton_model;

/** All zeros but for `size` are the defaults. */
typedef struct soliton_model_options {
  size_t size; /**< sizeof(soliton_model_options) */
  /** Index of the card; 0 is also the emulation on a CPU where there is no card. */
  int32_t device;
  /** Tokens of one text at most; 0: as many as the model takes and memory holds, at most 32768, in emulation 4096. */
  int32_t context;
  /** Tokens whose keys and values are kept, of all texts together, a context and a page (64) at least; 0: as many as the
   * card's free memory holds, in emulation four contexts. */
  int64_t cache_tokens;
  /** Path of a kernel library; null: a fitting one is found, or made and kept, which takes up to a minute. */
  const char* kernel;
  /** Path of a template in place of the model's; null: the model's. */
  const char* chat_template;
  /** Told in one line, without its end, what takes a while or surprises; only while the model is opened. Null:
   * nobody. */
  void (*log)(void* log_data, const char* line);
  void* log_data;
} soliton_model_options;

/** Opens a model: a Hugging Face folder (config.json, tokenizer.json, safetensors), a GGUF file, or the name of one that is in
 * Hugging Face's cache, such as "Qwen/Qwen2.5-7B-Instruct". Takes seconds. `options` may be null. Of `*model` nothing
 * but null remains if it fails: NOT_FOUND, BAD_FILE, MISMATCH for what is no sound model; MAKE_FAILED, DEVICE,
 * OUT_OF_MEMORY for what this machine cannot do. */
soliton_status soliton_model_open(const char* folder, const soliton_model_options* options,
                                  soliton_model** model);
/** Null is allowed, as for all that closes. */
void soliton_model_close(soliton_model* model);

/** What is known of an open model. */
typedef struct soliton_model_info {
  size_t size;               /**< in: sizeof(soliton_model_info); all else is out */
  int32_t context;           /**< tokens of one text at most, prompt and answer but for its last token */
  int32_t vocabulary;        /**< token ids are 0 to vocabulary - 1 */
  int32_t max_rows;          /**< texts that are decoded in one step at most; more take turns */
  int32_t has_chat_template; /**< 0 or 1 */
  int32_t is_emulated;       /**< 0 or 1: there is no card, and it is slow */
  int64_t cache_tokens;      /**< that the cache holds */
} soliton_model_info;

soliton_status soliton_model_get_info(const soliton_model* model, soliton_model_info* info);

/* ---- Text and tokens
 *
 * Results go to memory of the caller: `capacity` elements, of which `*count` are the result. If they are too few,
 * `*count` says how many are needed, nothing is written, and the status is OUT_OF_MEMORY; but where the capacity is 0,
 * so that the buffer may be null, it is OK: that asks for the number. */

enum {
  /** To tokenize: first the tokens that a text of its own begins with, such as begin-of-text. */
  SOLITON_ADD_PREFIX = 1,
  /** To tokenize: special tokens that the text spells out count. Never for a text that a user wrote. */
  SOLITON_PARSE_SPECIAL = 2,
  /** To detokenize: special tokens give no text. */
  SOLITON_SKIP_SPECIAL = 4
};

/** Token ids of `text_bytes` bytes of UTF-8; what is no UTF-8 counts as U+FFFD. `flags` is a sum of the above. */
soliton_status soliton_tokenize(const soliton_model* model, const char* text, size_t text_bytes, int flags,
                                int32_t* tokens, size_t capacity, size_t* count);

/** UTF-8 text of the tokens, always valid; `*count` bytes and then a NUL, for which the capacity has to have
 * room too. */
soliton_status soliton_detokenize(const soliton_model* model, const int32_t* tokens, size_t num_tokens,
                                  int flags, char* text, size_t capacity, size_t* count);

/** The prompt of a conversation, as the chat template renders it: token ids of what stands before the next answer of the
 * assistant. Special tokens count only where the template wrote them, whatever the messages say; that is why it gives
 * tokens and no text. All three are JSON in text, as templates take it: `messages` a list of {"role": ..., "content":
 * ...}, `tools` a list of functions as in OpenAI's API or null, `variables` an object of what the template knows beside
 * ({"enable_thinking": false}) or null. USAGE without a template, BAD_FILE for what is no such JSON, MISMATCH if the
 * template refuses it. */
soliton_status soliton_render_chat(const soliton_model* model, const char* messages, const char* tools,
                                   const char* variables, int32_t* tokens, size_t capacity, size_t* count);

/* ---- Generating */

/** How tokens are chosen, and when it ends. */
typedef struct soliton_options {
  size_t size; /**< sizeof(soliton_options) */
  /** Tokens to generate at most; 0: as many as the context takes, which is the limit in any case. */
  int32_t max_tokens;
  /** 0 to 100; 0: always the best token, and the next three have no meaning. */
  double temperature;
  /** The k best tokens stay; 0: all. */
  int32_t top_k;
  /** 0 to 1: of these, the fewest best that have this share of their probability; 1: all. */
  double top_p;
  /** 0 to 1: of these, those at least so many times as likely as the best; 0: all. */
  double min_p;
  /** 0.01 to 100: of tokens in prompt or answer, positive logits are divided by it, others multiplied; 1: none. */
  double repeat_penalty;
  /** The same draws again; the i-th branch of a call draws with seed + i, modulo 2^32. */
  uint32_t seed;
  /** 1: the natural logarithm of each token's probability is told, by the model's distribution before all of this. */
  int32_t logprobs;
  /** 1: goes on after the model's end-of-text tokens. */
  int32_t ignore_eos;
  /** [num_stops]: texts, none of them empty, that end it and are not handed on. */
  const char* const* stops;
  size_t num_stops;
  /** What the answer may be, as a grammar in llama.cpp's notation (GBNF), or null. Each token is then chosen among those
   * that may follow, and logprobs are among these; an answer that ends by itself is of the grammar. Each branch of a call
   * begins it anew. BAD_FILE and OUT_OF_MEMORY for what is no grammar, or too ambiguous. */
  const char* grammar;
  /** The same as a JSON schema, of which the README says what is taken; one of both. Also MISMATCH. */
  const char* json_schema;
} soliton_options;

/** Fills in what the model's files ask for, and no limits. `size` is sizeof(soliton_options). */
soliton_status soliton_options_init(const soliton_model* model, soliton_options* options, size_t size);

/** A token as it comes. */
typedef struct soliton_token {
  int32_t branch; /**< of the tree; 0 in a session */
  int32_t id;     /**< -1: none; what follows is the end of the text */
  float logprob;  /**< NaN unless asked for */
  /** What can be shown now: whole characters of UTF-8, NUL-terminated, often "" while a character or a stop may be under
   * way. All of them together are the answer without its stop. Valid during the call. */
  const char* text;
  size_t text_bytes;
} soliton_token;

/** Called for each token while the device goes on; another value than 0 ends this text behind the token. */
typedef int (*soliton_on_token)(void* data, const soliton_token* token);

/** Why it ended. */
typedef enum soliton_finish {
  SOLITON_STOP_TOKEN = 0, /**< an end-of-text token, which counts, and gives no text */
  SOLITON_STOP_TEXT = 1,  /**< one of the stops */
  SOLITON_LENGTH = 2,     /**< max_tokens, or the context is full */
  SOLITON_CALLBACK = 3,   /**< on_token wanted no more */
  SOLITON_CANCELLED = 4,  /**< soliton_cancel() */
  SOLITON_WHOLE = 5 /**< it is all that its grammar takes, and there are no end-of-text tokens (ignore_eos) */
} soliton_finish;

/** What has become of one text. */
typedef struct soliton_result {
  size_t size; /**< in: sizeof(soliton_result); all else is out */
  soliton_finish finish;
  int32_t num_prompt;    /**< tokens of the text before */
  int32_t num_cached;    /**< of these, not fed again */
  int32_t num_generated; /**< tokens, with those of a stop */
  double logprob;        /**< sum over these; NaN unless asked for */
  double first_token_s;  /**< from the call to the first token; 0 if there is none */
  double total_s;        /**< of the call */
} soliton_result;

/* ---- Sessions */

typedef struct soliton_session soliton_session;

soliton_status soliton_session_open(soliton_model* model, soliton_session** session);
void soliton_session_close(soliton_session* session);

/** Generates behind a prompt: `num_tokens` (1 or more) tokens, the whole text from its first one on. Of these, what the
 * cache has is not fed again, be it of this session or another one; fewer than 16 tokens are not looked for. `options`
 * null: the model's. `on_token` and `result` may be null. OUT_OF_MEMORY if the prompt does not fit the context or the
 * cache has no room beside trees; MISMATCH for token ids that are none; DEVICE. */
soliton_status soliton_generate(soliton_session* session, const int32_t* tokens, size_t num_tokens,
                                const soliton_options* options, soliton_on_token on_token, void* data,
                                soliton_result* result);

/** Ends the soliton_generate() that is under way in another thread, also while its prompt is fed, or as soon as it has
 * its turn: it is then OK, with SOLITON_CANCELLED. Without one nothing happens. From any thread and from callbacks, but
 * not from a signal handler. */
void soliton_cancel(soliton_session* session);

/** Asked between launches whether a call goes on, prompts that are fed included, in the thread that made it: 0, or else it
 * ends as by soliton_cancel(). It must call nothing of the same model. */
typedef int (*soliton_ends)(void* data);

/** Has calls of the session ask `ends`, null: nobody; not while one is under way. */
soliton_status soliton_session_ask(soliton_session* session, soliton_ends ends, void* data);

/* ---- Trees */

typedef struct soliton_tree soliton_tree;

soliton_status soliton_tree_open(soliton_model* model, soliton_tree** tree);
/** Prunes all of its branches. */
void soliton_tree_close(soliton_tree* tree);

/** Has calls of the tree that need the device ask `ends`, null: nobody; not while one is under way. A decode that ends so is
 * OK, with SOLITON_CANCELLED, a fork is OK, and a score is SOLITON_USAGE. */
soliton_status soliton_tree_ask(soliton_tree* tree, soliton_ends ends, void* data);

/** A new branch with a text of its own: 1 or more tokens, not all of which need be fed. A tree may have many. */
soliton_status soliton_tree_add(soliton_tree* tree, const int32_t* tokens, size_t num_tokens,
                                int32_t* branch);

/** `count` (1 or more) new branches that go on from the text of another one, which stays; what is cached of it they
 * share. `new_branches` is [count]. Numbers of pruned branches are given out again. */
soliton_status soliton_tree_fork(soliton_tree* tree, int32_t branch, size_t count, int32_t* new_branches);

/** Puts tokens at the end of a branch. */
soliton_status soliton_tree_append(soliton_tree* tree, int32_t branch, const int32_t* tokens,
                                   size_t num_tokens);

/** Ends a branch. */
soliton_status soliton_tree_prune(soliton_tree* tree, int32_t branch);

/** The text of a branch, all of it: see "Text and tokens" for the buffer. */
soliton_status soliton_tree_tokens(const soliton_tree* tree, int32_t branch, int32_t* tokens, size_t capacity,
                                   size_t* count);

/** Generates behind branches, which are different ones, all in one step each: options.max_tokens tokens a branch, or
 * fewer where one ends. The tokens become the branches' text, those of a stop too. `options` null: the model's.
 * `results` is null or [num_branches], of which the first one's `size` counts for all. After an error tokens may have
 * been added, which soliton_tree_tokens() says. OUT_OF_MEMORY if a branch does not fit the context, or the branches in
 * use do not fit the cache: prune some. */
soliton_status soliton_tree_decode(soliton_tree* tree, const int32_t* branches, size_t num_branches,
                                   const soliton_options* options, soliton_on_token on_token, void* data,
                                   soliton_result* results);

/** What the model thinks of a continuation: logprobs[i] becomes the logarithm of the probability of tokens[i] behind the
 * branch and the tokens before it; `logprobs` is [num_tokens], 1 or more. The branch stays as it is. Answers of many
 * such questions are as reproducible as logits: which kernel computes them may change their last bits. */
soliton_status soliton_tree_score(soliton_tree* tree, int32_t branch, const int32_t* tokens,
                                  size_t num_tokens, float* logprobs);

#ifdef __cplusplus
}
#endif

#endif
