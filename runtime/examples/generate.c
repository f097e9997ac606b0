/* Completes a text with a model, and says how fast: generate MODEL TEXT [TOKENS [KERNEL]]
 *
 *   cc generate.c $(pkg-config --cflags --libs soliton) -o generate */
#include <soliton.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char* what) {
  fprintf(stderr, "generate: %s: %s\n", what, soliton_last_error());
  return 1;
}

static void print_line(void* data, const char* line) {
  (void)data;
  fprintf(stderr, "%s\n", line);
}

/* Text is shown as it comes; 1 would end it. */
static int print_text(void* data, const soliton_token* token) {
  (void)data;
  fwrite(token->text, 1, token->text_bytes, stdout);
  fflush(stdout);
  return 0;
}

/* The tokens of a text that stands alone, to be freed; null, with a reason in soliton_last_error(), if there are none. */
static int32_t* tokenize(const soliton_model* model, const char* text, size_t* count) {
  if (soliton_tokenize(model, text, strlen(text), SOLITON_ADD_PREFIX, NULL, 0, count) != SOLITON_OK)
    return NULL;
  int32_t* const tokens = malloc((*count + 1) * sizeof *tokens);
  if (tokens == NULL) return NULL;
  if (soliton_tokenize(model, text, strlen(text), SOLITON_ADD_PREFIX, tokens, *count, count) == SOLITON_OK)
    return tokens;
  free(tokens);
  return NULL;
}

static int complete(soliton_model* model, const char* text, int max_tokens) {
  soliton_options options;
  if (soliton_options_init(model, &options, sizeof options) != SOLITON_OK) return fail("options");
  options.max_tokens = max_tokens;

  size_t num_tokens = 0;
  int32_t* const tokens = tokenize(model, text, &num_tokens);
  if (tokens == NULL) return fail("tokens");
  soliton_session* session = NULL;
  soliton_result result = {.size = sizeof result};
  int status = 0;
  if (soliton_session_open(model, &session) != SOLITON_OK ||
      soliton_generate(session, tokens, num_tokens, &options, print_text, NULL, &result) != SOLITON_OK) {
    status = fail("generate");
  } else {
    fprintf(stderr, "\n%d tokens behind %d, the first after %.3f s, all in %.3f s\n", result.num_generated,
            result.num_prompt, result.first_token_s, result.total_s);
  }
  soliton_session_close(session);
  free(tokens);
  return status;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: generate MODEL TEXT [TOKENS [KERNEL]]\n");
    return 2;
  }
  const soliton_model_options options = {
      .size = sizeof options, .kernel = argc > 4 ? argv[4] : NULL, .log = print_line};
  soliton_model* model = NULL;
  if (soliton_model_open(argv[1], &options, &model) != SOLITON_OK) return fail("open");
  const int status = complete(model, argv[2], argc > 3 ? atoi(argv[3]) : 100);
  soliton_model_close(model);
  return status;
}
