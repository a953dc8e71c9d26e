/* The same from C. */
#include <firn/firn.h>
#include <stdio.h>

static float field[20 * 30 * 40];
static float decoded[20 * 30 * 40];

int main(void) {
  firn_context* context = firn_context_new();
  firn_array array;
  firn_options options;
  void* stream = NULL;
  size_t size = 0;
  int i;

  for (i = 0; i < 20 * 30 * 40; ++i) field[i] = (float)((i * 7) % 1000) * 0.01f;
  firn_array_init(&array);
  array.data = field;
  array.type = FIRN_F32;
  array.rank = 3;
  array.extents[0] = 20;
  array.extents[1] = 30;
  array.extents[2] = 40;
  firn_options_init(&options);
  options.bound = FIRN_ABS;
  options.bound_value = 1e-3;
  if (firn_compress(context, &array, &options, &stream, &size) != FIRN_OK) {
    fprintf(stderr, "%s\n", firn_context_error(context));
    return 1;
  }
  array.data = decoded;
  if (firn_decompress(context, stream, size, &array) != FIRN_OK) return 1;
  for (i = 0; i < 20 * 30 * 40; ++i) {
    const float error = decoded[i] - field[i];
    if (error > 1e-3f || error < -1e-3f) return 1;
  }
  printf("Firn %s from C: %u bytes became %u\n", firn_version(), (unsigned)sizeof field,
         (unsigned)size);
  firn_free(stream);
  firn_context_free(context);
  return 0;
}
