/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A call that fails changes nothing: each object that loads a state gets one with each kind of fault at
 * each of its entries, and is compared bit by bit with its former value. Then follow rounds of several
 * random faults; GTORCH_FUZZ_RUNS sets their number. */

#include "config.h"

#include <gtorch/memory/gtorch-allocator-private.h>
#include <gtorch/nn/gtorch-module-private.h>
#include <gtorch/tensor/gtorch-hold-private.h>
#include <math.h>

#include "state-subjects.h"

/* --- faults --- */

typedef enum
{
  NO_TENSOR,
  RELEASED,
  COMPLEX,
  SHAPE,
  MISSING,
  UNEXPECTED,
  NEGATIVE,
  NOT_A_NUMBER,
  INFINITE,
  FRACTION,
  N_FAULTS,
} Fault;

static const gchar *const faults[] = { "no_tensor", "released",   "complex",  "shape",
                                       "missing",   "unexpected", "negative", "not_a_number",
                                       "infinite",  "fraction" };

static void
put_fault (GHashTable *state, const gchar *name, Fault fault)
{
  GTorchTensor *tensor = g_hash_table_lookup (state, name);
  g_autoptr (GTorchTensor) spoilt = NULL;
  const gdouble numbers[] = {
    [NEGATIVE] = -1, [NOT_A_NUMBER] = NAN, [INFINITE] = INFINITY, [FRACTION] = 1.5
  };
  GTorchDType dtype = GTORCH_DTYPE_NONE;

  switch (fault)
    {
    case NO_TENSOR:
      g_hash_table_insert (state, g_strdup (name), g_object_new (G_TYPE_OBJECT, NULL));
      return;
    case MISSING:
      g_hash_table_remove (state, name);
      return;
    case UNEXPECTED:
      g_hash_table_insert (state, g_strconcat (name, ".more", NULL), g_object_ref (tensor));
      g_hash_table_insert (state, g_strdup ("state.99.more"), g_object_ref (tensor));
      return;
    case RELEASED:
      spoilt = gtorch_tensor_clone (tensor, NULL);
      gtorch_tensor_release (spoilt);
      break;
    case COMPLEX:
      spoilt = gtorch_tensor_to_dtype (tensor, GTORCH_DTYPE_COMPLEX64, NULL);
      break;
    case SHAPE:
      spoilt = gtorch_zeros (GTORCH_SHAPE (5, 4, 2), gtorch_tensor_get_dtype (tensor), NULL, NULL);
      break;
    default:
      if (gtorch_tensor_get_dtype (tensor) == GTORCH_DTYPE_INT64)
        /* int64 values would be valid, so float64 is the wrong dtype */
        dtype = GTORCH_DTYPE_FLOAT64;
      spoilt = gtorch_tensor_full_like (tensor, numbers[fault], dtype, NULL);
    }
  g_assert_nonnull (spoilt);
  g_hash_table_insert (state, g_strdup (name), g_steal_pointer (&spoilt));
}

/* The settings of groups that are true or false. */
static gboolean
is_flag (const gchar *name)
{
  return g_str_has_suffix (name, ".maximize") || g_str_has_suffix (name, ".nesterov")
         || g_str_has_suffix (name, ".amsgrad")
         || g_str_has_suffix (name, ".decoupled_weight_decay");
}

static gboolean
is_count (const Subject *subject, const gchar *name)
{
  return g_str_has_suffix (name, "num_batches_tracked") || g_str_has_suffix (name, ".params")
         || g_str_equal (name, "growth_interval") || g_str_equal (name, "_growth_tracker")
         || is_flag (name) || (g_str_has_suffix (name, ".step") && subject->variant != OWN);
}

static gboolean
must_fail (const Subject *subject, const gchar *name, Fault fault)
{
  gboolean is_scaler = subject->load == load_scaler;
  gboolean is_group = g_str_has_prefix (name, "group.");

  switch (fault)
    {
    case NO_TENSOR:
    case RELEASED:
    case SHAPE:
      return TRUE;
    case COMPLEX: /* a program's optimizer may have complex numbers in its state */
      return subject->variant != OWN || is_group || is_scaler;
    /* entries that depend on a setting are optional, and so are all of a program's optimizer */
    case MISSING:
      if (g_str_has_suffix (name, ".params"))
        return FALSE; /* older states have none */
      if (subject->load == load_optimizer && !is_group)
        return subject->variant != OWN && !g_str_has_suffix (name, ".momentum_buffer")
               && !g_str_has_suffix (name, ".max_exp_avg_sq")
               && !(subject->variant % CAPTURABLE == SGD && g_str_has_suffix (name, ".step"));
      return subject->load != load_module_loosely;
    case UNEXPECTED:
      return subject->load != load_module_loosely;
    case NEGATIVE:
      return (is_group && !g_str_has_suffix (name, ".dampening")
              && !g_str_has_suffix (name, ".own"))
             || is_scaler || is_count (subject, name);
    case NOT_A_NUMBER:
    case INFINITE:
      return is_group || is_scaler || is_count (subject, name);
    case FRACTION:
      return is_count (subject, name) || g_str_equal (name, "backoff_factor");
    default:
      g_assert_not_reached ();
    }
}

static GByteArray *
shoot (const Subject *subject, gpointer self)
{
  GByteArray *bits = g_byte_array_new ();

  subject->shoot (self, bits);
  return bits;
}

/* Loads the state. Returns TRUE if that failed, and checks that nothing has changed then. */
static gboolean
fails (const Subject *subject, gpointer self, GHashTable *state, gchar **message)
{
  g_autoptr (GByteArray) before = shoot (subject, self);
  g_autoptr (GByteArray) after = NULL;
  g_autoptr (GError) error = NULL;
  gboolean result = !subject->load (self, state, &error);

  g_assert_true (result == (error != NULL));
  after = shoot (subject, self);
  if (result)
    g_assert_cmpmem (before->data, before->len, after->data, after->len);
  if (message != NULL)
    *message = g_strdup (error != NULL ? error->message : "");
  return result;
}

static void
assert_loaded (const Subject *subject, gpointer self, GHashTable *state)
{
  g_autoptr (GHashTable) now = subject->get (self);
  GHashTableIter iter;
  gpointer name, value;

  g_assert_cmpuint (g_hash_table_size (now), ==, g_hash_table_size (state));
  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &name, &value))
    {
      GTorchTensor *tensor = g_hash_table_lookup (now, name);
      gsize n, m;
      g_autofree gpointer have = NULL;
      g_autofree gpointer wanted = test_dup_elements (value, &m);

      g_assert_nonnull (tensor);
      g_assert_cmpint (gtorch_tensor_get_dtype (tensor), ==, gtorch_tensor_get_dtype (value));
      have = test_dup_elements (tensor, &n);
      g_assert_cmpmem (have, n, wanted, m);
    }
}

static void
a_whole_state_is_loaded (gconstpointer data)
{
  const Subject *subject = data;
  g_autoptr (GObject) source = subject->make (subject->variant, 2);
  g_autoptr (GObject) self = subject->make (subject->variant, 0);
  g_autoptr (GHashTable) state = subject->get (source);

  g_assert_false (fails (subject, self, state, NULL));
  assert_loaded (subject, self, state);
  /* its own state, which shares its memory */
  g_assert_false (fails (subject, self, state, NULL));
  assert_loaded (subject, self, state);
}

static void
a_fault_anywhere_changes_nothing (gconstpointer data)
{
  static const gchar *const numbers[] = { [NEGATIVE] = " is -1",
                                          [NOT_A_NUMBER] = " is nan",
                                          [INFINITE] = " is inf",
                                          [FRACTION] = " is 1.5" };
  const Subject *subject = data;
  g_autoptr (GObject) source = subject->make (subject->variant, 2);
  g_autoptr (GHashTable) good = subject->get (source);
  g_autoptr (GPtrArray) names = sorted_names (good);
  guint i, n_failed = 0;
  Fault fault;

  for (i = 0; i < names->len; i++)
    for (fault = 0; fault < N_FAULTS; fault++)
      {
        g_autoptr (GObject) self = subject->make (subject->variant, 0);
        g_autoptr (GHashTable) state = copy_state (good);
        g_autofree gchar *message = NULL;
        gboolean failed;

        put_fault (state, names->pdata[i], fault);
        failed = fails (subject, self, state, &message);
        if (must_fail (subject, names->pdata[i], fault) && !failed)
          g_error ("%s: “%s” with the fault %s was loaded", subject->name,
                   (const gchar *) names->pdata[i], faults[fault]);
        if (failed && fault >= NEGATIVE
            && (strstr (message, names->pdata[i]) == NULL
                || strstr (message, numbers[fault]) == NULL))
          g_error ("%s: “%s” names not both %s and %s", subject->name, message,
                   (const gchar *) names->pdata[i], numbers[fault]);
        n_failed += failed;
      }
  g_test_message ("%u of %u failed", n_failed, names->len * N_FAULTS);
  g_assert_cmpuint (n_failed, >=, 3 * names->len);
}

static void
faults_at_random_change_nothing (gconstpointer data)
{
  const Subject *subject = data;
  const gchar *rounds = g_getenv ("GTORCH_FUZZ_RUNS");
  guint64 n_rounds = rounds != NULL ? g_ascii_strtoull (rounds, NULL, 10) : 50, round;
  g_autoptr (GRand) random = g_rand_new_with_seed (20);
  g_autoptr (GObject) source = subject->make (subject->variant, 2);
  g_autoptr (GHashTable) good = subject->get (source);
  g_autoptr (GPtrArray) names = sorted_names (good);
  g_autoptr (GObject) self = subject->make (subject->variant, 0);

  for (round = 0; round < n_rounds; round++)
    {
      g_autoptr (GHashTable) state = copy_state (good);
      guint n = g_rand_int_range (random, 0, 4), i;

      for (i = 0; i < n; i++)
        {
          const gchar *name = names->pdata[g_rand_int_range (random, 0, names->len)];

          if (GTORCH_IS_TENSOR (g_hash_table_lookup (state, name)))
            {
              GTorchTensor *tensor = g_hash_table_lookup (state, name);

              if (gtorch_tensor_unwrap (tensor)->storage != NULL)
                put_fault (state, name, g_rand_int_range (random, 0, N_FAULTS));
            }
        }
      if (!fails (subject, self, state, NULL))
        {
          g_clear_object (&self);
          self = subject->make (subject->variant, round % 3);
        }
    }
}

/* --- targets that cannot be written --- */

typedef enum
{
  TARGET_RELEASED,
  TARGET_READ_ONLY,
  TARGET_EXPANDED,
  N_TARGETS,
} TargetFault;

static void
spoil_target (GTorchTensor *tensor, TargetFault fault)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  g_autoptr (GTorchTensor) other = NULL;
  GTorchImpl *to;

  if (fault == TARGET_RELEASED)
    {
      gtorch_tensor_release (tensor);
      return;
    }
  if (fault == TARGET_READ_ONLY)
    {
      gsize n;
      gpointer elements = test_dup_elements (tensor, &n);
      g_autoptr (GBytes) bytes = g_bytes_new_take (elements, n);

      other = gtorch_tensor_new_from_bytes (bytes, impl->dtype, impl->shape, impl->n_dims, NULL);
    }
  else
    {
      g_autoptr (GTorchTensor) one = gtorch_full (NULL, 0, 1, impl->dtype, NULL, NULL);

      other = gtorch_tensor_expand (one, impl->shape, impl->n_dims, NULL);
    }
  g_assert_nonnull (other);
  to = gtorch_tensor_unwrap (other);
  g_assert_true (gtorch_impls_set_data (&impl, &to, 1));
}

static void
a_target_that_cannot_be_written_changes_nothing (gconstpointer data)
{
  const Subject *subject = data;
  g_autoptr (GObject) source = subject->make (subject->variant, 2);
  g_autoptr (GHashTable) state = subject->get (source);
  TargetFault fault;
  guint i, n = 1;

  for (fault = 0; fault < N_TARGETS; fault++)
    for (i = 0; i < n; i++)
      {
        g_autoptr (GObject) self = subject->make (subject->variant, 0);
        g_autoptr (GPtrArray) targets = subject->list_targets (self);
        GTorchTensor *target = targets->pdata[i];

        n = targets->len;
        if (fault == TARGET_EXPANDED && gtorch_tensor_get_numel (target) == 1)
          continue;
        spoil_target (target, fault);
        g_assert_true (fails (subject, self, state, NULL));
      }
}

static GTorchTensor *
linear_weight (GTorchModule *net, const gchar *path, GHashTable **state)
{
  g_clear_pointer (state, g_hash_table_unref);
  *state = gtorch_module_state_dict (net);
  return g_hash_table_lookup (*state, path);
}

/* Each parameter is read before the other is written, although the state shares the module's memory. */
static void
parameters_may_change_places (void)
{
  g_autoptr (GTorchModule) net = make_module (0, 1);
  g_autoptr (GHashTable) shared = NULL;
  g_autoptr (GHashTable) swapped = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) before = get_module (net);
  g_autoptr (GHashTable) after = NULL;
  g_autoptr (GError) error = NULL;
  const gchar *const names[] = { "0.1.weight", "0.1.bias", "0.1.running_mean" };
  g_autoptr (GTorchTensor) weight = g_object_ref (linear_weight (net, "0.0.weight", &shared));
  g_autoptr (GTorchTensor) turned = gtorch_tensor_t (weight, NULL);
  guint i;

  for (i = 0; i < 3; i++)
    g_hash_table_insert (swapped, (gpointer) names[i],
                         g_hash_table_lookup (shared, names[(i + 1) % 3]));
  g_hash_table_insert (swapped, (gpointer) "0.0.weight", turned); /* a view of the same parameter */
  g_assert_true (gtorch_module_load_state_dict (net, swapped, FALSE, &error));
  g_assert_no_error (error);
  after = get_module (net);
  for (i = 0; i < 3; i++)
    {
      gsize n, m;
      g_autofree gpointer have = test_dup_elements (g_hash_table_lookup (after, names[i]), &n);
      g_autofree gpointer wanted =
          test_dup_elements (g_hash_table_lookup (before, names[(i + 1) % 3]), &m);

      g_assert_cmpmem (have, n, wanted, m);
    }
  for (i = 0; i < 9; i++)
    g_assert_cmpfloat (test_element (g_hash_table_lookup (after, "0.0.weight"), i), ==,
                       test_element (g_hash_table_lookup (before, "0.0.weight"),
                                     i % 3 * 3 + i / 3));
}

/* --- calls for all parameters --- */

static gboolean
zero_module (gpointer self, GError **error)
{
  return gtorch_module_zero_grad (self, FALSE, error);
}

static gboolean
zero_optimizer (gpointer self, GError **error)
{
  return gtorch_optimizer_zero_grad (self, FALSE, error);
}

static gboolean
learn_module (gpointer self, GError **error)
{
  return gtorch_module_set_requires_grad (self, TRUE, error);
}

static gboolean
freeze_module (gpointer self, GError **error)
{
  return gtorch_module_set_requires_grad (self, FALSE, error);
}

static gboolean
convert_module (gpointer self, GError **error)
{
  return gtorch_module_to (self, NULL, GTORCH_DTYPE_FLOAT64, error);
}

static GPtrArray *
list_params (gpointer self)
{
  g_autoptr (GListModel) parameters = NULL;
  GPtrArray *list;
  guint i;

  if (GTORCH_IS_OPTIMIZER (self))
    return gtorch_optimizer_dup_params (self);
  parameters = gtorch_module_get_parameters (self, TRUE);
  list = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = 0; i < g_list_model_get_n_items (parameters); i++)
    g_ptr_array_add (list, g_list_model_get_item (parameters, i));
  return list;
}

/* Makes parameter i, or its gradient, invalid for the call. Returns FALSE if that is impossible. */
static gboolean
spoil_param (GTorchTensor *param, gboolean (*call) (gpointer, GError **), TargetFault fault)
{
  if (call == zero_module || call == zero_optimizer)
    {
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (param);

      spoil_target (grad, fault);
      return TRUE;
    }
  if (call == learn_module)
    {
      g_autoptr (GTorchTensor) whole = gtorch_tensor_zeros_like (param, GTORCH_DTYPE_INT32, NULL);

      GTorchImpl *impl = gtorch_tensor_unwrap (param), *to = gtorch_tensor_unwrap (whole);

      g_assert_true (gtorch_impls_set_data (&impl, &to, 1));
      return TRUE;
    }
  if (call == freeze_module)
    {
      g_autoptr (GTorchTensor) loss = gtorch_tensor_requires_grad_inplace (param, FALSE, NULL);
      g_autoptr (GTorchTensor) wanted = gtorch_tensor_ones_like (param, GTORCH_DTYPE_NONE, NULL);

      /* a tensor that an operation has written to is not a leaf any more */
      g_object_ref (loss);
      gtorch_tensor_set_requires_grad (wanted, TRUE, NULL);
      return gtorch_tensor_mul_inplace (param, wanted, NULL) != NULL
             && !gtorch_tensor_is_leaf (param);
    }
  if (fault != TARGET_RELEASED)
    return FALSE;
  gtorch_tensor_release (param);
  return TRUE;
}

static void
calls_for_all_parameters_change_all_or_none (void)
{
  static const struct
  {
    const Subject *subject;
    gboolean (*call) (gpointer self, GError **error);
  } calls[] = {
    { &subjects[0], zero_module },    { &subjects[4], zero_optimizer },
    { &subjects[0], learn_module },   { &subjects[0], freeze_module },
    { &subjects[0], convert_module },
  };
  TargetFault fault;
  guint c, i, k, n, n_failed = 0;

  for (c = 0; c < G_N_ELEMENTS (calls); c++)
    for (fault = 0; fault < N_TARGETS; fault++)
      for (i = 0, n = 1; i < n; i++)
        {
          const Subject *subject = calls[c].subject;
          g_autoptr (GObject) self = subject->make (subject->variant, 0);
          g_autoptr (GPtrArray) params = list_params (self);
          g_autoptr (GByteArray) before = NULL;
          g_autoptr (GByteArray) after = NULL;
          g_autoptr (GError) error = NULL;

          n = params->len;
          for (k = 0; k < n; k++)
            {
              g_autoptr (GTorchTensor) grad =
                  gtorch_tensor_full_like (params->pdata[k], k + 1, GTORCH_DTYPE_NONE, NULL);

              gtorch_tensor_set_requires_grad (params->pdata[k], calls[c].call != learn_module,
                                               NULL);
              g_assert_true (gtorch_tensor_set_grad (params->pdata[k], grad, NULL));
            }
          if (!spoil_param (params->pdata[i], calls[c].call, fault))
            continue;
          before = shoot (subject, self);
          g_test_message ("call %u, fault %u, parameter %u", c, fault, i);
          g_assert_false (calls[c].call (self, &error));
          g_assert_nonnull (error);
          after = shoot (subject, self);
          g_assert_cmpmem (before->data, before->len, after->data, after->len);
          n_failed++;
        }
  g_assert_cmpuint (n_failed, >, 40);
}

/* --- states that are no tables --- */

static void
a_generator_keeps_its_state (void)
{
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (5);
  g_autoptr (GBytes) former = gtorch_generator_get_state (generator);
  gsize size, n, i;
  const guint8 *data = g_bytes_get_data (former, &size);

  for (n = 0; n <= size + 1; n++)
    for (i = 0; i < 8; i++)
      {
        g_autofree guint8 *wrong = g_malloc0 (size + 1);
        g_autoptr (GBytes) bytes = NULL;
        g_autoptr (GBytes) after = NULL;
        g_autoptr (GError) error = NULL;

        memset (wrong, 9, size);
        memcpy (wrong, data, 8);
        if (n == size)
          wrong[i] ^= 1;
        bytes = g_bytes_new (wrong, n);
        g_assert_false (gtorch_generator_set_state (generator, bytes, &error));
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
        after = gtorch_generator_get_state (generator);
        g_assert_true (g_bytes_equal (former, after));
      }
}

static void
a_wrong_setting_anywhere_configures_nothing (void)
{
  const gchar *const good[] = { "backend:segments",
                                "max_split_size_mb:64",
                                "garbage_collection_threshold:0.5",
                                "roundup_power2_divisions:[256:2,>:4]",
                                "pinned_use_background_threads:True",
                                "pinned_num_register_threads:4" };
  const gchar *const wrong[] = { "nonsense:1",
                                 "max_split_size_mb",
                                 "max_split_size_mb:x",
                                 "backend:",
                                 "roundup_power2_divisions:[256:3]",
                                 "roundup_power2_divisions:[256:2,512:x]",
                                 "pinned_num_register_threads:3",
                                 "expandable_segments:perhaps" };
  guint at, w, i;

  for (at = 0; at <= G_N_ELEMENTS (good); at++)
    for (w = 0; w < G_N_ELEMENTS (wrong); w++)
      {
        g_autoptr (GString) text = g_string_new (NULL);
        g_autoptr (GError) error = NULL;
        GTorchAllocatorConfig former, config;

        memset (&former, 0, sizeof former); /* clears the padding, too */
        gtorch_allocator_config_init (&former);
        config = former;
        memcpy (&config, &former, sizeof config);
        for (i = 0; i <= G_N_ELEMENTS (good); i++)
          {
            if (i == at)
              g_string_append_printf (text, "%s,", wrong[w]);
            if (i < G_N_ELEMENTS (good))
              g_string_append_printf (text, "%s,", good[i]);
          }
        g_assert_false (gtorch_allocator_config_parse (&config, text->str, &error));
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
        g_assert_cmpmem (&config, sizeof config, &former, sizeof former);
      }
}

/* Truncates the file at any length, and changes any byte: then the load returns nothing. */
static void
a_damaged_file_gives_nothing (void)
{
  g_autoptr (GTorchModule) net = make_module (0, 1);
  g_autoptr (GHashTable) state = gtorch_module_state_dict (net);
  g_autoptr (GHashTable) texts = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GOutputStream) stream = g_memory_output_stream_new_resizable ();
  g_autoptr (GBytes) whole = NULL;
  gsize size, i;
  const guint8 *data;
  guint n_failed = 0;

  g_hash_table_insert (texts, (gpointer) "key", (gpointer) "text");
  g_assert_true (gtorch_safetensors_save (state, texts, stream, NULL, NULL, NULL, NULL));
  g_output_stream_close (stream, NULL, NULL);
  whole = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (stream));
  data = g_bytes_get_data (whole, &size);
  for (i = 0; i < 2 * size; i++)
    {
      g_autofree guint8 *spoilt = g_memdup2 (data, size);
      g_autoptr (GBytes) bytes = NULL;
      g_autoptr (GInputStream) input = NULL;
      gchar *marks[2] = { NULL, NULL };
      gchar **names = marks, **metadata = marks;
      GHashTable *table = texts;
      guint how;

      spoilt[i % size] ^= i < size ? 0 : 0x11;
      bytes = g_bytes_new (spoilt, i < size ? i : size);
      input = g_memory_input_stream_new_from_bytes (bytes);
      for (how = 0; how < 3; how++)
        {
          g_autoptr (GError) error = NULL;
          g_autoptr (GPtrArray) list = NULL;
          g_autoptr (GHashTable) tensors = NULL;

          if (how == 0)
            list = gtorch_safetensors_load_bytes_lists (bytes, &names, &metadata, &error);
          else if (how == 1)
            list = gtorch_safetensors_load_lists (input, NULL, &names, &metadata, NULL, NULL, NULL,
                                                  &error);
          else
            tensors = gtorch_safetensors_load_bytes (bytes, &table, &error);
          g_assert_true ((list == NULL && tensors == NULL) == (error != NULL));
          g_assert_true (i >= size || error != NULL);
          if (error != NULL)
            {
              g_assert_true (names == marks && metadata == marks && table == texts);
              n_failed++;
              continue;
            }
          if (names != marks)
            g_strfreev (g_steal_pointer (&names));
          if (metadata != marks)
            g_strfreev (g_steal_pointer (&metadata));
          if (table != texts)
            g_hash_table_unref (table);
          names = metadata = marks;
          table = texts;
        }
    }
  g_assert_cmpuint (n_failed, >, 3 * size);
}

static void
a_group_with_a_wrong_parameter_is_not_added (void)
{
  guint i, k;

  for (i = 0; i < 3; i++)
    for (k = 0; k < 2; k++)
      {
        g_autoptr (GTorchOptimizer) self = make_optimizer (ADAM, 1);
        g_autoptr (GPtrArray) known = gtorch_optimizer_dup_params (self);
        g_autoptr (GListModel) params = make_params (0, 3, 1);
        g_autoptr (GTorchTensor) old = g_list_model_get_item (params, i);
        g_autoptr (GTorchTensor) no_leaf = gtorch_tensor_neg (old, NULL);
        g_autoptr (GTorchParamGroup) group = NULL;
        g_autoptr (GByteArray) before = g_byte_array_new ();
        g_autoptr (GByteArray) after = g_byte_array_new ();
        g_autoptr (GError) error = NULL;
        gpointer wrong = k == 0 ? known->pdata[i] : no_leaf;

        g_list_store_splice (G_LIST_STORE (params), i, 1, &wrong, 1);
        group = gtorch_param_group_new (params, 0.1, 0, NULL);
        shoot_optimizer (self, before);
        g_assert_false (gtorch_optimizer_add_param_group (self, group, &error));
        g_assert_nonnull (error);
        shoot_optimizer (self, after);
        g_assert_cmpmem (before->data, before->len, after->data, after->len);
      }
}

/* --- results of a load --- */

static void
a_loaded_state_has_the_dtype_of_the_steps (void)
{
  g_autoptr (GTorchOptimizer) source = make_optimizer (ADAM, 2);
  g_autoptr (GTorchOptimizer) self = make_optimizer (ADAM, 0);
  g_autoptr (GHashTable) state = gtorch_optimizer_state_dict (source);
  g_autoptr (GHashTable) other =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  g_autoptr (GPtrArray) names = sorted_names (state);
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < names->len; i++)
    g_hash_table_insert (other, g_strdup (names->pdata[i]),
                         g_str_has_prefix (names->pdata[i], "group.")
                             ? g_object_ref (g_hash_table_lookup (state, names->pdata[i]))
                             : gtorch_tensor_to_dtype (g_hash_table_lookup (state, names->pdata[i]),
                                                       g_str_has_suffix (names->pdata[i], "step")
                                                           ? GTORCH_DTYPE_INT32
                                                           : GTORCH_DTYPE_FLOAT64,
                                                       NULL));
  g_assert_true (gtorch_optimizer_load_state_dict (self, other, &error));
  g_assert_no_error (error);
  assert_loaded (&subjects[4], self, state);
  g_assert_true (gtorch_optimizer_step (self, &error));
  g_assert_no_error (error);
}

static gboolean
is_of_parameter (gpointer name, gpointer value, gpointer data)
{
  return g_str_has_prefix (name, "state.");
}

static void
put_betas (GHashTable *state, const gchar *name, gdouble beta1, gdouble beta2)
{
  const gdouble betas[] = { beta1, beta2 };
  GTorchTensor *tensor =
      gtorch_tensor_new_from_doubles (betas, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT64, NULL, NULL);

  g_hash_table_insert (state, g_strdup (name), tensor);
}

/* Which a state without a step does not show. */
static void
the_number_of_parameters_is_checked (void)
{
  static const guint steps[] = { 0, 2 };

  for (guint i = 0; i < G_N_ELEMENTS (steps); i++)
    {
      g_autoptr (GTorchOptimizer) self = make_optimizer (ADAM, steps[i]);
      g_autoptr (GHashTable) state = gtorch_optimizer_state_dict (self);
      g_autoptr (GTorchTensor) first =
          gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
      g_autoptr (GTorchTensor) count = g_object_ref (g_hash_table_lookup (state, "group.0.params"));
      g_autoptr (GTorchTensor) more = gtorch_tensor_add_scalar (count, 1, 1, NULL);
      g_autoptr (GTorchOptimizer) other = NULL;
      g_autoptr (GHashTable) others = NULL;
      g_autofree gchar *message = NULL;
      g_autoptr (GError) error = NULL;

      g_list_store_append (params, first);
      other = GTORCH_OPTIMIZER (gtorch_adam_new (G_LIST_MODEL (params), 0.1, &error));
      g_assert_no_error (error);
      others = gtorch_optimizer_state_dict (other);
      g_hash_table_insert (state, g_strdup ("group.0.params"), g_object_ref (more));
      message = g_strdup_printf ("load_state_dict: group 0 of the state has %.0f parameters, and "
                                 "that of the "
                                 "optimizer %.0f",
                                 gtorch_tensor_item_double (more, NULL),
                                 gtorch_tensor_item_double (count, NULL));
      g_assert_false (gtorch_optimizer_load_state_dict (self, state, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      g_assert_cmpstr (error->message, ==, message);
      g_clear_error (&error);
      g_assert_false (gtorch_optimizer_load_state_dict (other, state, &error));
      g_clear_error (&error);
      g_assert_true (gtorch_optimizer_load_state_dict (other, others, &error));
      g_hash_table_remove (state, "group.0.params"); /* as an older state */
      g_assert_true (gtorch_optimizer_load_state_dict (self, state, &error));
      g_assert_no_error (error);
    }
}

static void
a_load_drops_the_old_state (void)
{
  static const guint variants[] = { ADAM, ADAM | CAPTURABLE };
  guint i, k;

  for (i = 0; i < G_N_ELEMENTS (variants); i++)
    {
      g_autoptr (GTorchOptimizer) self = make_optimizer (variants[i], 2);
      g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (self);
      g_autoptr (GTorchTensor) lr = gtorch_full (NULL, 0, 0.125, GTORCH_DTYPE_FLOAT64, NULL, NULL);
      g_autoptr (GHashTable) state = gtorch_optimizer_state_dict (self);
      g_autoptr (GError) error = NULL;

      g_hash_table_foreach_remove (state, is_of_parameter, NULL);
      g_hash_table_remove (state, "group.0.weight_decay");
      g_hash_table_remove (state, "group.1.betas");
      g_hash_table_remove (state, "group.1.lr");
      g_assert_false (gtorch_optimizer_load_state_dict (self, state, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
      g_assert_cmpstr (error->message, ==,
                       "load_state_dict: missing: group.0.weight_decay, group.1.lr, group.1.betas");
      g_clear_error (&error);
      g_hash_table_insert (state, g_strdup ("group.0.lr"), g_object_ref (lr));
      g_hash_table_insert (state, g_strdup ("group.0.weight_decay"), g_object_ref (lr));
      g_hash_table_insert (state, g_strdup ("group.1.lr"), g_object_ref (lr));
      put_betas (state, "group.1.betas", 0.5, 0.25);
      g_assert_true (gtorch_optimizer_load_state_dict (self, state, &error));
      g_assert_no_error (error);
      g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (self), ==, 0.125);
      for (k = 0; k < params->len; k++)
        {
          GTorchTensor *step = gtorch_optimizer_get_state (self, params->pdata[k], "step");

          if (variants[i] < CAPTURABLE)
            g_assert_null (step);
          else
            g_assert_cmpfloat (gtorch_tensor_item_double (step, NULL), ==, 0);
        }
    }
}

static void
add_for (const Subject *subject, const gchar *fact, GTestDataFunc func)
{
  g_autofree gchar *path = g_strdup_printf ("/GTorch/state/%s/%s", subject->name, fact);

  g_test_add_data_func (path, subject, func);
}

#define ADD(fact)        g_test_add_func ("/GTorch/state/" #fact, fact)
#define ADD_FOR(i, fact) add_for (&subjects[i], #fact, fact)

int
main (int argc, char **argv)
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (subjects); i++)
    {
      ADD_FOR (i, a_whole_state_is_loaded);
      ADD_FOR (i, a_fault_anywhere_changes_nothing);
      ADD_FOR (i, faults_at_random_change_nothing);
      if (subjects[i].list_targets != NULL)
        ADD_FOR (i, a_target_that_cannot_be_written_changes_nothing);
    }
  ADD (parameters_may_change_places);
  ADD (calls_for_all_parameters_change_all_or_none);
  ADD (a_generator_keeps_its_state);
  ADD (a_wrong_setting_anywhere_configures_nothing);
  ADD (a_damaged_file_gives_nothing);
  ADD (a_group_with_a_wrong_parameter_is_not_added);
  ADD (a_loaded_state_has_the_dtype_of_the_steps);
  ADD (a_load_drops_the_old_state);
  ADD (the_number_of_parameters_is_checked);
  return g_test_run ();
}
