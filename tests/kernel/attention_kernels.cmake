# Kernels of one small layer for attention_test.cc, each with some of the variants of attention.
#
# soliton_add_attention_kernel(NUMBER HEAD_DIM ROPE VARIANTS... [LONG]): attention-NUMBER, for 1, 8 and 64 rows.
#   ROPE      plain; local: the layer has a theta of its own; none: it is not rotated; scaled: queries by their position
#   VARIANTS  window, chunk, cap, sinks, scale, alibi, bytes (a cache of), partial (half of a head's dims are rotated), normed
#             (heads, which are rotated elsewhere then)
# Of every two variants, and of a variant and a head dim, some kernel has both, one has either alone, and one has none, and of
# each head dim so: says AttentionMatrixOf.EveryPairOfVariants. Short runs have each variant, rotation and head dim.
function(soliton_add_attention_kernel number head_dim rope)
  set(name attention-${number})
  set(lines "")
  set(flags --ctas 3 --rows 1,8,64 --min-pages-per-split 1 BRIEF)
  set(dims "")
  foreach(variant ${ARGN})
    if(variant STREQUAL "window")
      string(APPEND lines "windows: [45]\n")
    elseif(variant STREQUAL "chunk")
      string(APPEND lines "chunks: [100]\n")
    elseif(variant STREQUAL "alibi")
      string(APPEND lines "alibi: 8.0\n")
    elseif(variant STREQUAL "cap")
      string(APPEND lines "attention_soft_cap: 1.5\n")
    elseif(variant STREQUAL "sinks")
      string(APPEND lines "sinks: true\n")
    elseif(variant STREQUAL "scale")
      string(APPEND lines "attention_scale: 0.2\n")
    elseif(variant STREQUAL "normed")
      string(APPEND lines "head_norm: true\n")
    elseif(variant STREQUAL "bytes")
      list(APPEND flags --kv-bits 8)
    elseif(variant STREQUAL "partial")
      math(EXPR half "${head_dim} / 2")
      set(dims "  dims: ${half}\n")
    elseif(variant STREQUAL "LONG")
      list(APPEND flags LONG)
    endif()
  endforeach()
  set(turned "")
  if(rope STREQUAL "local")
    set(turned "  local_theta: 50.0\n  layers: [1]\n")
  elseif(rope STREQUAL "none")
    set(turned "  layers: [2]\n")
  elseif(rope STREQUAL "scaled")
    string(APPEND lines "query_scale_beta: 0.3\nquery_scale_context: 20\n")
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/attention/${name}.yaml CONTENT
"name: ${name}
hidden: 64
ffn: 64
num_layers: 1
num_heads: 6
num_kv_heads: 2
head_dim: ${head_dim}
vocabulary: 32
tied_lm_head: true
max_context: 1024
norm_epsilon: 1.0e-5
${lines}rope:
  kind: default
  theta: 10000.0
${dims}${turned}")
  soliton_add_test_kernel(${name} ${CMAKE_CURRENT_BINARY_DIR}/attention/${name} ${flags})
  if(number MATCHES "^[0-9]+$")
    set_property(GLOBAL APPEND PROPERTY soliton_attention_kernels ${name})
  endif()
endfunction()

soliton_add_attention_kernel(1 64 local cap sinks alibi bytes partial normed LONG)
soliton_add_attention_kernel(2 64 none window cap bytes LONG)
soliton_add_attention_kernel(3 64 none chunk sinks scale alibi normed)
soliton_add_attention_kernel(4 96 scaled sinks alibi LONG)
soliton_add_attention_kernel(5 96 scaled window chunk cap scale bytes partial)
soliton_add_attention_kernel(6 128 local chunk sinks scale partial normed LONG)
soliton_add_attention_kernel(7 128 local cap alibi bytes normed)
soliton_add_attention_kernel(8 128 local window alibi partial LONG)
soliton_add_attention_kernel(9 256 plain chunk cap alibi partial LONG)
soliton_add_attention_kernel(10 256 plain window sinks scale alibi bytes normed LONG)
soliton_add_attention_kernel(11 256 plain window chunk cap sinks partial normed)
soliton_add_attention_kernel(12 64 local cap scale alibi partial normed LONG)
soliton_add_attention_kernel(13 64 local chunk sinks bytes partial normed LONG)
soliton_add_attention_kernel(14 64 local window chunk cap scale bytes LONG)
soliton_add_attention_kernel(15 64 plain chunk cap sinks scale alibi bytes normed LONG)
soliton_add_attention_kernel(16 64 plain window partial LONG)
soliton_add_attention_kernel(17 64 plain window sinks scale alibi partial normed LONG)
soliton_add_attention_kernel(18 64 none scale bytes LONG)
soliton_add_attention_kernel(19 64 none window chunk cap sinks alibi normed LONG)
soliton_add_attention_kernel(20 64 scaled window chunk sinks bytes LONG)
soliton_add_attention_kernel(21 64 scaled cap scale alibi partial LONG)
soliton_add_attention_kernel(22 96 local sinks scale alibi partial LONG)
soliton_add_attention_kernel(23 96 local window chunk cap bytes LONG)
soliton_add_attention_kernel(24 96 plain window cap sinks scale bytes partial LONG)
soliton_add_attention_kernel(25 96 plain window chunk alibi partial LONG)
soliton_add_attention_kernel(26 96 plain chunk scale alibi LONG)
soliton_add_attention_kernel(27 96 none window chunk cap bytes LONG)
soliton_add_attention_kernel(28 96 none chunk sinks scale alibi bytes LONG)
soliton_add_attention_kernel(29 96 none window cap sinks alibi LONG)
soliton_add_attention_kernel(30 96 scaled chunk alibi LONG)
soliton_add_attention_kernel(31 96 scaled cap sinks LONG)
soliton_add_attention_kernel(32 96 scaled window scale bytes partial LONG)
soliton_add_attention_kernel(33 128 local cap scale alibi partial normed LONG)
soliton_add_attention_kernel(34 128 local chunk sinks bytes partial normed LONG)
soliton_add_attention_kernel(35 128 local window chunk cap scale bytes LONG)
soliton_add_attention_kernel(36 128 plain chunk cap sinks scale alibi bytes normed LONG)
soliton_add_attention_kernel(37 128 plain window partial LONG)
soliton_add_attention_kernel(38 128 plain window sinks scale alibi partial normed LONG)
soliton_add_attention_kernel(39 128 none scale bytes LONG)
soliton_add_attention_kernel(40 128 none window chunk cap sinks alibi normed LONG)
soliton_add_attention_kernel(41 128 scaled window chunk sinks bytes LONG)
soliton_add_attention_kernel(42 128 scaled cap scale alibi partial LONG)
soliton_add_attention_kernel(43 256 local cap scale alibi partial normed LONG)
soliton_add_attention_kernel(44 256 local chunk sinks bytes partial normed LONG)
soliton_add_attention_kernel(45 256 local window chunk cap scale bytes LONG)
soliton_add_attention_kernel(46 256 plain chunk cap sinks scale alibi bytes normed LONG)
soliton_add_attention_kernel(47 256 plain window partial LONG)
soliton_add_attention_kernel(48 256 plain window sinks scale alibi partial normed LONG)
soliton_add_attention_kernel(49 256 none scale bytes LONG)
soliton_add_attention_kernel(50 256 none window chunk cap sinks alibi normed LONG)
soliton_add_attention_kernel(51 256 scaled window chunk sinks bytes LONG)
soliton_add_attention_kernel(52 256 scaled cap scale alibi partial LONG)

# With the variant that the page shows how to write, beside two others.
set(own_variant ${CMAKE_CURRENT_BINARY_DIR}/attention/own_variant.cuh)
add_custom_command(
  OUTPUT ${own_variant}
  COMMAND sed -n [[/^```cpp/,/^```$/ { /^```/!p }]] ${CMAKE_SOURCE_DIR}/templates/ops/README.md > ${own_variant}
  DEPENDS ${CMAKE_SOURCE_DIR}/templates/ops/README.md
  VERBATIM)
soliton_add_attention_kernel(own 64 plain cap sinks)
target_sources(test-attention-own PRIVATE ${own_variant})
target_compile_definitions(test-attention-own PRIVATE SOLITON_OWN_VARIANT="${own_variant}")
# Which others have compiled without it.
set_target_properties(test-attention-own PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
