/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Parses and writes an allocator's configuration as text: "max_split_size_mb:128,backend:segments". */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "memory/gtorch-allocator-private.h"
#include "base/gtorch-environment-private.h"
#include "base/gtorch-text-private.h"

#define MIB         (G_GINT64_CONSTANT (1) << 20)
#define GRAIN       512
#define MIN_SPLIT   (20 * MIB) /* the size of shared segments, which are always split */
#define MAX_MIB     (G_MAXINT64 / MIB)
#define MAX_THREADS 128

typedef enum
{
  BACKEND,
  SIZE, /* integer, in MiB */
  FRACTION,
  DIVISIONS,
  SWITCH,
  EXPANDABLE,
  THREADS,
} Kind;

typedef struct
{
  const gchar *name;
  Kind kind;
  gsize offset;
  gint64 above; /* for sizes: exclusive minimum in MiB */
} Key;

#define AT(field) G_STRUCT_OFFSET (GTorchAllocatorConfig, field)

/* clang-format off */
static const Key keys[] = {
  { "backend",                           BACKEND,    AT (backend),                0 },
  { "max_split_size_mb",                 SIZE,       AT (max_split_size),         MIN_SPLIT / MIB },
  { "max_non_split_rounding_mb",         SIZE,       AT (max_non_split_rounding), MIN_SPLIT / MIB },
  { "garbage_collection_threshold",      FRACTION,   AT (gc_threshold),           0 },
  { "per_process_memory_fraction",       FRACTION,   AT (fraction),               0 },
  { "roundup_power2_divisions",          DIVISIONS,  AT (divisions),              0 },
  { "expandable_segments",               EXPANDABLE, AT (backend),                0 },
  { "release_lock_on_cudamalloc",        SWITCH,     AT (release_lock),           0 },
  { "pinned_use_cuda_host_register",     SWITCH,     AT (host_register),          0 },
  { "pinned_num_register_threads",       THREADS,    AT (register_threads),       0 },
  { "pinned_use_background_threads",     SWITCH,     AT (background_threads),     0 },
  { "graph_capture_record_stream_reuse", SWITCH,     AT (reuse_in_capture),       0 },
};
/* clang-format on */

void
gtorch_allocator_config_init (GTorchAllocatorConfig *config)
{
  *config = (GTorchAllocatorConfig){
    .max_split_size = -1,
    .max_non_split_rounding = MIN_SPLIT,
    .fraction = 1,
    .register_threads = 1,
  };
}

/* --- parsing --- */

static gboolean
wrong_value (const gchar *name, const gchar *value, const gchar *rule, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("allocator: “%s” is not a value of “%s”: %s"), gtorch_name_str (value), name,
               rule);
  return FALSE;
}

static gboolean
read_number (const gchar *text, gint64 low, gint64 high, gint64 *number)
{
  return g_ascii_string_to_signed (text, 10, low, high, number, NULL);
}

static gboolean
read_divisor (const gchar *text, gint64 *n)
{
  return read_number (text, 0, 64, n) && (*n & (*n - 1)) == 0;
}

/* Parses the divisions of a power of two: one number for all powers of two, or a list by size in MiB, such
 * as [256:1,512:2,>:4]. */
static gboolean
read_divisions (const gchar *name, const gchar *text, gint64 *divisions, GError **error)
{
  const gchar *const rule =
      _ ("it must be a power of two up to 64, or a list such as [256:1,512:2,>:4], by "
         "sizes in MiB that are powers of two");
  g_auto (GStrv) parts = NULL;
  gint64 all[GTORCH_N_DIVISIONS], size, n;
  gsize length = strlen (text);
  guint i, k, next = 0;

  if (read_divisor (text, &n))
    {
      for (i = 0; i < GTORCH_N_DIVISIONS; i++)
        divisions[i] = n;
      return TRUE;
    }
  if (length < 2 || text[0] != '[' || text[length - 1] != ']')
    return wrong_value (name, text, rule, error);
  {
    g_autofree gchar *inner = g_strndup (text + 1, length - 2);

    parts = g_strsplit (inner, ",", -1);
  }
  memcpy (all, divisions, sizeof all);
  if (parts[0] == NULL)
    return wrong_value (name, text, rule, error);
  for (i = 0; parts[i] != NULL; i++)
    {
      gchar *colon = strchr (parts[i], ':');

      if (colon == NULL)
        return wrong_value (name, text, rule, error);
      *colon = '\0';
      if (!read_divisor (colon + 1, &n))
        return wrong_value (name, text, rule, error);
      if (strcmp (parts[i], ">") == 0)
        {
          for (k = next; k < GTORCH_N_DIVISIONS; k++)
            all[k] = n;
          continue;
        }
      if (!read_number (parts[i], 1, G_GINT64_CONSTANT (1) << (GTORCH_N_DIVISIONS - 1), &size)
          || (size & (size - 1)) != 0)
        return wrong_value (name, text, rule, error);
      k = g_bit_storage (size) - 1;
      if (i == 0) /* smaller sizes have the divisions of the first entry */
        for (next = 0; next < k; next++)
          all[next] = n;
      all[k] = n;
      next = k + 1;
    }
  memcpy (divisions, all, sizeof all);
  return TRUE;
}

static gboolean
read_switch (const Key *key, const gchar *text, gboolean *value, GError **error)
{
  if (g_ascii_strcasecmp (text, "true") != 0 && g_ascii_strcasecmp (text, "false") != 0)
    return wrong_value (key->name, text, _ ("it must be True or False"), error);
  *value = g_ascii_tolower (text[0]) == 't';
  return TRUE;
}

static gboolean
read_value (GTorchAllocatorConfig *config, const Key *key, const gchar *text, GError **error)
{
  gpointer at = G_STRUCT_MEMBER_P (config, key->offset);
  g_autofree gchar *rule = NULL;
  gboolean value;
  gdouble fraction;
  gchar *end;
  gint64 n;

  switch (key->kind)
    {
    case BACKEND:
      if (strcmp (text, "native") == 0 || strcmp (text, "arenas") == 0)
        *(gint *) at = GTORCH_BACKEND_ARENAS;
      else if (strcmp (text, "segments") == 0)
        *(gint *) at = GTORCH_BACKEND_SEGMENTS;
      else if (strcmp (text, "cudaMallocAsync") == 0)
        *(gint *) at = GTORCH_BACKEND_ASYNC;
      else
        return wrong_value (key->name, text,
                            _ ("it must be native, arenas, segments or cudaMallocAsync"), error);
      return TRUE;
    case SIZE:
      if (!read_number (text, key->above + 1, MAX_MIB, &n))
        {
          rule = g_strdup_printf (_ ("it must be a number of MiB above %d"), (int) key->above);
          return wrong_value (key->name, text, rule, error);
        }
      *(gint64 *) at = n * MIB;
      return TRUE;
    case FRACTION:
      fraction = g_ascii_strtod (text, &end);
      if (end == text || *end != '\0' || !(fraction > 0 && fraction <= 1))
        return wrong_value (key->name, text, _ ("it must be a number above 0 and up to 1"), error);
      *(gdouble *) at = fraction;
      return TRUE;
    case DIVISIONS:
      return read_divisions (key->name, text, at, error);
    case EXPANDABLE:
      if (!read_switch (key, text, &value, error))
        return FALSE;
      *(gint *) at = value ? GTORCH_BACKEND_ARENAS : GTORCH_BACKEND_SEGMENTS;
      return TRUE;
    case SWITCH:
      if (!read_switch (key, text, &value, error))
        return FALSE;
      *(gint64 *) at = value;
      return TRUE;
    case THREADS:
      if (!read_number (text, 1, MAX_THREADS, &n) || (n & (n - 1)) != 0)
        return wrong_value (key->name, text, _ ("it must be a power of two up to 128"), error);
      *(gint64 *) at = n;
      return TRUE;
    default:
      g_assert_not_reached ();
    }
}

static gboolean
read_item (GTorchAllocatorConfig *config, const gchar *item, GError **error)
{
  const gchar *colon = strchr (item, ':');
  g_autofree gchar *name = colon != NULL ? g_strndup (item, colon - item) : g_strdup (item);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (keys); i++)
    if (strcmp (name, keys[i].name) == 0)
      {
        if (colon != NULL)
          return read_value (config, &keys[i], colon + 1, error);
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("allocator: “%s” lacks a colon and a value"), gtorch_name_str (item));
        return FALSE;
      }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("allocator: “%s” is not a key; max_split_size_mb and backend are keys, "
                  "for example"),
               gtorch_name_str (name));
  return FALSE;
}

/* Parses the text. If it comes from an environment variable, wrong items are ignored, with one warning
 * each; with variable NULL they are errors. */
static gboolean
parse (GTorchAllocatorConfig *config, const gchar *text, const gchar *variable, GError **error)
{
  GTorchAllocatorConfig changed = *config;
  g_autoptr (GString) item = g_string_new (NULL);
  gint depth = 0;
  const gchar *at;

  for (at = text;; at++)
    {
      g_autoptr (GError) wrong = NULL;

      depth += (*at == '[') - (*at == ']');
      if (*at != '\0' && (*at != ',' || depth > 0))
        {
          if (!g_ascii_isspace (*at))
            g_string_append_c (item, *at);
          continue;
        }
      if (item->len > 0 && !read_item (&changed, item->str, &wrong))
        {
          if (variable == NULL)
            {
              g_propagate_error (error, g_steal_pointer (&wrong));
              return FALSE;
            }
          if (gtorch_env_is_news (variable, item->str))
            g_warning ("%s: %s; this setting is ignored", variable, wrong->message);
        }
      g_string_truncate (item, 0);
      if (*at == '\0')
        break;
    }
  *config = changed;
  return TRUE;
}

gboolean
gtorch_allocator_config_parse (GTorchAllocatorConfig *config, const gchar *text, GError **error)
{
  return parse (config, text, NULL, error);
}

/* --- formatting --- */

static void
print_fraction (GString *text, gdouble fraction)
{
  gchar buffer[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append (text, g_ascii_dtostr (buffer, sizeof buffer, fraction));
}

static void
print_divisions (GString *text, const gint64 *divisions)
{
  guint i;

  g_string_append_c (text, '[');
  for (i = 0; i < GTORCH_N_DIVISIONS; i++)
    g_string_append_printf (text, "%s%u:%d", i > 0 ? "," : "", 1u << i, (int) divisions[i]);
  g_string_append_c (text, ']');
}

gchar *
gtorch_allocator_config_print (const GTorchAllocatorConfig *config)
{
  static const gchar *const backends[] = { "native", "segments", "cudaMallocAsync" };
  GTorchAllocatorConfig initial;
  GString *text = g_string_new (NULL);
  guint i;

  gtorch_allocator_config_init (&initial);
  for (i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      gconstpointer at = G_STRUCT_MEMBER_P (config, keys[i].offset);
      gsize size = keys[i].kind == DIVISIONS ? sizeof initial.divisions
                   : keys[i].kind == BACKEND ? sizeof (gint)
                                             : sizeof (gint64);

      if (keys[i].kind == EXPANDABLE
          || (keys[i].kind != BACKEND
              && memcmp (at, G_STRUCT_MEMBER_P (&initial, keys[i].offset), size) == 0))
        continue;
      g_string_append_printf (text, "%s%s:", text->len > 0 ? "," : "", keys[i].name);
      switch (keys[i].kind)
        {
        case BACKEND:
          g_string_append (text, backends[*(const gint *) at]);
          break;
        case SIZE:
          g_string_append_printf (text, "%" G_GINT64_FORMAT, *(const gint64 *) at / MIB);
          break;
        case FRACTION:
          print_fraction (text, *(const gdouble *) at);
          break;
        case DIVISIONS:
          print_divisions (text, at);
          break;
        case THREADS:
          g_string_append_printf (text, "%d", (int) *(const gint64 *) at);
          break;
        default:
          g_string_append (text, *(const gint64 *) at ? "True" : "False");
        }
    }
  return g_string_free (text, FALSE);
}

void
gtorch_allocator_config_read (GTorchAllocator *self)
{
  static const gchar *const names[] = { "GTORCH_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
                                        "PYTORCH_CUDA_ALLOC_CONF" };
  const gchar *text = NULL, *value;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names) && text == NULL; i++)
    if ((text = gtorch_getenv (names[i])) != NULL)
      parse (&self->config, text, names[i], NULL);
  if (gtorch_device_is_host (self->device))
    self->config.fraction = 1; /* the environment speaks of GPUs */
  value = gtorch_getenv ("GTORCH_ALLOC");
  if (value != NULL)
    {
      g_autofree gchar *item = g_strconcat ("backend:", value, NULL);

      parse (&self->config, item, "GTORCH_ALLOC", NULL);
    }
  if (gtorch_env_flag ("GTORCH_NO_MEMORY_CACHING",
                       gtorch_env_is_on ("PYTORCH_NO_CUDA_MEMORY_CACHING")))
    self->caching = FALSE;
  self->stats.max_split_size = self->config.max_split_size;
}

gsize
gtorch_allocator_config_round (const GTorchAllocatorConfig *config, gsize n_bytes)
{
  gsize size = (MAX (n_bytes, 1) + GRAIN - 1) & ~(gsize) (GRAIN - 1);
  guint power = g_bit_storage (size) - 1;
  guint index = CLAMP ((gint) power - 20, 0, GTORCH_N_DIVISIONS - 1);
  gint64 divisions = config->divisions[index];

  if (divisions > 1 && size > (gsize) GRAIN * divisions && (size & (size - 1)) != 0)
    {
      gsize step = ((gsize) 1 << power) / divisions;

      size = (size + step - 1) / step * step;
    }
  return size;
}

gboolean
gtorch_allocator_promise (GTorchAllocator *self, gsize n_bytes, gboolean promise)
{
  const guint64 total = gtorch_device_get_total_memory (self->device);
  gboolean result = TRUE;

  gtorch_allocator_lock_stats (self);
  if (!promise)
    self->promised -= n_bytes;
  else
    {
      const GTorchCounter *reserved =
          &self->stats.counters[GTORCH_POOL_ALL][GTORCH_STAT_RESERVED_BYTES];

      result = self->config.fraction >= 1
               || reserved->current + self->promised + (gdouble) n_bytes
                      <= self->config.fraction * total;
      if (result)
        self->promised += n_bytes;
    }
  gtorch_allocator_unlock_stats (self);
  return result;
}
