/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>

#include "members.h"

/* Computes scale * (inner (x) + shift), with faults on demand. */
typedef enum
{
  MODE_WORK,
  MODE_SILENT,
  MODE_ERROR,
} Mode;

#define TEST_TYPE_NET (test_net_get_type ())
G_DECLARE_FINAL_TYPE (TestNet, test_net, TEST, NET, GTorchModule)

struct _TestNet
{
  GTorchModule parent_instance;
  GTorchModule *inner;
  Mode mode;
};

G_DEFINE_TYPE (TestNet, test_net, GTORCH_TYPE_MODULE)

static GTorchTensor *
test_net_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  TestNet *self = TEST_NET (module);
  g_autoptr (GTorchTensor) inner = NULL;
  g_autoptr (GTorchTensor) shifted = NULL;

  if (self->mode == MODE_SILENT)
    return NULL;
  if (self->mode == MODE_ERROR)
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, "no mood");
      return NULL;
    }
  inner = gtorch_module_forward (self->inner, input, error);
  if (inner == NULL)
    return NULL;
  shifted = gtorch_tensor_add (inner, test_buffer (module, "shift"), 1, error);
  if (shifted == NULL)
    return NULL;
  return gtorch_tensor_mul (shifted, test_parameter (module, "scale"), error);
}

static void
test_net_class_init (TestNetClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = test_net_forward;
}

/* Adds what it is given, and overrides forward_many alone. */
#define TEST_TYPE_SUM (test_sum_get_type ())
G_DECLARE_FINAL_TYPE (TestSum, test_sum, TEST, SUM, GTorchModule)

struct _TestSum
{
  GTorchModule parent_instance;
  gboolean asks_parent;
};

G_DEFINE_TYPE (TestSum, test_sum, GTORCH_TYPE_MODULE)

static GTorchTensor *
test_sum_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  g_autoptr (GTorchTensor) sum = NULL;

  if (TEST_SUM (module)->asks_parent)
    return GTORCH_MODULE_CLASS (test_sum_parent_class)
        ->forward_many (module, inputs, n_inputs, error);
  sum = gtorch_tensor_clone (inputs[0], error);
  for (gsize i = 1; i < n_inputs; i++)
    gtorch_tensor_add_inplace (sum, inputs[i], 1, error);
  return g_steal_pointer (&sum);
}

static void
test_sum_class_init (TestSumClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward_many = test_sum_forward_many;
}

static void
test_sum_init (TestSum *self)
{
}

static GTorchTensor *
full (gint64 n, gdouble value)
{
  return gtorch_full (&n, 1, value, GTORCH_DTYPE_FLOAT32, NULL, NULL);
}

static void
test_net_init (TestNet *self)
{
  GTorchModule *module = GTORCH_MODULE (self);
  g_autoptr (GTorchTensor) two = full (2, 2);
  g_autoptr (GTorchTensor) half = full (2, 0.5);
  g_autoptr (GTorchTensor) scratch = full (3, 0);
  g_autoptr (GTorchParameter) scale = gtorch_parameter_new (two, TRUE, NULL);
  g_autoptr (GTorchLinear) linear = gtorch_linear_new (3, 2, NULL);

  self->inner = GTORCH_MODULE (linear);
  g_assert_true (gtorch_module_register_module (module, "inner", self->inner, NULL));
  g_assert_true (gtorch_module_register_parameter (module, "scale", scale, NULL));
  g_assert_true (gtorch_module_register_buffer (module, "shift", half, TRUE, NULL));
  g_assert_true (gtorch_module_register_buffer (module, "scratch", scratch, FALSE, NULL));
}

static TestNet *
net_new (void)
{
  return g_object_new (TEST_TYPE_NET, NULL);
}

static gdouble
at (GTorchTensor *tensor, gsize i)
{
  g_autofree gdouble *values = NULL;
  gsize n;

  values = gtorch_tensor_to_doubles (tensor, &n, NULL);
  g_assert_cmpuint (i, <, n);
  return values[i];
}

static void
assert_names (gchar **names, const gchar *expected)
{
  g_autofree gchar *joined = g_strjoinv (" ", names);

  g_assert_cmpstr (joined, ==, expected);
  g_strfreev (names);
}

static void
forward_runs_the_override (void)
{
  g_autoptr (TestNet) net = net_new ();
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (4, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) y = gtorch_module_forward (GTORCH_MODULE (net), x, &error);
  g_autoptr (GTorchTensor) inner = gtorch_module_forward (net->inner, x, &error);
  gsize n_dims;

  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_shape (y, &n_dims)[1], ==, 2);
  g_assert_cmpfloat_with_epsilon (at (y, 0), 2 * (at (inner, 0) + 0.5), 1e-6);
  g_assert_true (gtorch_tensor_get_requires_grad (y));
}

static void
forward_many_stands_for_forward (void)
{
  g_autoptr (TestSum) sum = g_object_new (TEST_TYPE_SUM, NULL);
  g_autoptr (GTorchTensor) x = full (2, 3);
  g_autoptr (GTorchTensor) one = NULL;
  g_autoptr (GTorchTensor) list = NULL;
  g_autoptr (GTorchTensor) two = NULL;
  g_autoptr (GError) error = NULL;
  GTorchTensor *inputs[] = { x, x };

  one = gtorch_module_forward (GTORCH_MODULE (sum), x, &error);
  list = gtorch_module_forward_many (GTORCH_MODULE (sum), inputs, 1, &error);
  two = gtorch_module_forward_many (GTORCH_MODULE (sum), inputs, 2, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (at (one, 1), ==, 3);
  g_assert_cmpfloat (at (list, 1), ==, 3);
  g_assert_cmpfloat (at (two, 1), ==, 6);
  sum->asks_parent = TRUE; /* which has nobody to ask */
  g_assert_null (gtorch_module_forward (GTORCH_MODULE (sum), x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

static void
forward_without_tensor_or_error_is_an_error (void)
{
  g_autoptr (TestNet) net = net_new ();
  g_autoptr (GTorchTensor) x = full (3, 1);
  g_autoptr (GError) error = NULL;

  net->mode = MODE_SILENT;
  g_assert_null (gtorch_module_forward (GTORCH_MODULE (net), x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "TestNet: forward returned no tensor and no error");
  g_clear_error (&error);
  net->mode = MODE_ERROR;
  g_assert_null (gtorch_module_forward (GTORCH_MODULE (net), x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward (GTORCH_MODULE (net), x, NULL));
}

static void
forward_of_the_base_class_is_an_error (void)
{
  g_autoptr (GTorchModule) module = g_object_new (GTORCH_TYPE_MODULE, NULL);
  g_autoptr (GTorchTensor) x = full (3, 1);
  GTorchTensor *inputs[] = { x, x };
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_module_forward (module, x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==, "Module: forward for one input is not implemented");
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward_many (module, inputs, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==, "Module: forward for 2 inputs is not implemented");
}

static void
members_are_listed_in_order (void)
{
  g_autoptr (TestNet) net = net_new ();
  GTorchModule *module = GTORCH_MODULE (net);
  g_autoptr (GListModel) all = gtorch_module_get_parameters (module, TRUE);
  g_autoptr (GListModel) own = gtorch_module_get_parameters (module, FALSE);
  g_autoptr (GListModel) buffers = gtorch_module_get_buffers (module, TRUE);
  g_autoptr (GListModel) modules = gtorch_module_get_modules (module);
  g_autoptr (GTorchParameter) first = g_list_model_get_item (all, 0);

  g_assert_cmpuint (g_list_model_get_n_items (all), ==, 3);
  g_assert_cmpuint (g_list_model_get_n_items (own), ==, 1);
  g_assert_cmpuint (g_list_model_get_n_items (buffers), ==, 2);
  g_assert_cmpuint (g_list_model_get_n_items (modules), ==, 2);
  g_assert_cmpuint (g_list_model_get_n_items (gtorch_module_get_children (module)), ==, 1);
  g_assert_true (g_list_model_get_item_type (all) == GTORCH_TYPE_PARAMETER);
  g_assert_cmpstr (gtorch_parameter_get_name (first), ==, "scale");
  g_assert_cmpint (gtorch_module_count_parameters (module, FALSE), ==, 2 + 6 + 2);
  assert_names (gtorch_module_get_parameter_names (module, TRUE), "scale inner.weight inner.bias");
  assert_names (gtorch_module_get_buffer_names (module, TRUE), "shift scratch");
  assert_names (gtorch_module_get_child_names (module), "inner");
  assert_names (gtorch_module_get_module_names (module), " inner");
  assert_names (gtorch_module_get_state_names (module), "scale shift inner.weight inner.bias");
}

static void
shared_parameters_are_listed_once (void)
{
  g_autoptr (GTorchLinear) a =
      gtorch_module_new (GTORCH_TYPE_LINEAR, NULL, "in-features", (gint64) 3, "out-features",
                         (gint64) 3, "has-bias", FALSE, NULL);
  g_autoptr (GTorchSequential) row = gtorch_sequential_new ();
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GHashTable) state = NULL;

  gtorch_sequential_append (row, GTORCH_MODULE (a), NULL);
  gtorch_sequential_append (row, GTORCH_MODULE (a), NULL);
  parameters = gtorch_module_get_parameters (GTORCH_MODULE (row), TRUE);
  state = gtorch_module_state_dict (GTORCH_MODULE (row));
  g_assert_cmpuint (g_list_model_get_n_items (parameters), ==, 1);
  g_assert_cmpuint (g_hash_table_size (state), ==, 2);
}

static void
registering_checks_names (void)
{
  g_autoptr (TestNet) net = net_new ();
  GTorchModule *module = GTORCH_MODULE (net);
  g_autoptr (GTorchTensor) x = full (2, 1);
  g_autoptr (GTorchParameter) p = gtorch_parameter_new (x, TRUE, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_module_register_parameter (module, "a.b", p, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "TestNet: 'a.b' is no name: it must have a letter and no dot");
  g_clear_error (&error);
  g_assert_false (gtorch_module_register_parameter (module, "", p, &error));
  g_clear_error (&error);
  g_assert_false (gtorch_module_register_parameter (module, "inner", p, &error));
  g_assert_cmpstr (error->message, ==, "TestNet: 'inner' is already the name of a module");
  g_clear_error (&error);
  g_assert_false (gtorch_module_register_buffer (module, "scale", x, TRUE, &error));
  g_assert_cmpstr (error->message, ==, "TestNet: 'scale' is already the name of a parameter");
  g_clear_error (&error);
  g_assert_false (gtorch_module_register_module (net->inner, "outer", module, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "Linear: it is itself inside the TestNet that was to be added to it");
  g_clear_error (&error);
  g_assert_false (gtorch_module_register_module (module, "me", module, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_true (gtorch_module_register_parameter (module, "scale", p, NULL));
  g_assert_true (test_parameter (module, "scale") == GTORCH_TENSOR (p));
}

/* Other languages make texts of names, and files contain them. */
static void
names_are_utf8 (void)
{
  static const gchar bad[] = "caf\xe9";
  g_autoptr (TestNet) net = net_new ();
  GTorchModule *module = GTORCH_MODULE (net);
  g_autoptr (GTorchTensor) x = full (2, 1);
  g_autoptr (GTorchParameter) p = gtorch_parameter_new (x, TRUE, NULL);
  g_autoptr (GTorchModule) child = GTORCH_MODULE (gtorch_relu_new ());
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GOutputStream) stream = g_memory_output_stream_new_resizable ();
  const gchar *const names[] = { bad, NULL };
  guint i;

  for (i = 0; i < 6; i++)
    {
      g_autoptr (GError) error = NULL;
      gboolean taken;

      if (i == 0)
        taken = gtorch_module_register_parameter (module, bad, p, &error);
      else if (i == 1)
        taken = gtorch_module_register_buffer (module, bad, x, TRUE, &error);
      else if (i == 2)
        taken = gtorch_module_register_module (module, bad, child, &error);
      else if (i == 3)
        taken = gtorch_module_load_state_lists (module, names, &x, 1, FALSE, &error);
      else if (i == 4)
        taken =
            gtorch_safetensors_save_lists (names, &x, 1, NULL, stream, NULL, NULL, NULL, &error);
      else
        taken = gtorch_cuda_graph_add_input (graph, bad, x, &error);
      g_assert_false (taken);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_true (g_str_has_suffix (error->message, ": the text “caf�” is not UTF-8"));
    }
  g_assert_true (gtorch_module_register_module (module, "café", child, NULL));
}

static void
members_are_found_by_path (void)
{
  g_autoptr (TestNet) net = net_new ();
  GTorchModule *module = GTORCH_MODULE (net);
  g_autoptr (GError) error = NULL;

  g_assert_nonnull (test_parameter (module, "inner.weight"));
  g_assert_no_error (error);
  g_assert_true (test_module (module, "inner") == net->inner);
  g_assert_true (test_module (module, "") == module);
  g_assert_null (gtorch_module_get_parameter (module, "inner.wait", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "Linear: no parameter 'inner.wait'");
  g_clear_error (&error);
  g_assert_null (gtorch_module_get_module (module, "inner.x.y", &error));
  g_assert_cmpstr (error->message, ==, "Linear: no module 'x', wanted for 'inner.x.y'");
  g_clear_error (&error);
  g_assert_null (gtorch_module_get_buffer (module, "scale", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
}

static void
count_notify (GObject *object, GParamSpec *pspec, gpointer user_data)
{
  (*(guint *) user_data)++;
}

static void
training_reaches_all_and_notifies (void)
{
  g_autoptr (TestNet) net = net_new ();
  guint n = 0;

  g_signal_connect (net->inner, "notify::training", G_CALLBACK (count_notify), &n);
  g_assert_true (gtorch_module_get_training (net->inner));
  gtorch_module_eval (GTORCH_MODULE (net));
  g_assert_false (gtorch_module_get_training (net->inner));
  gtorch_module_eval (GTORCH_MODULE (net));
  g_assert_cmpuint (n, ==, 1);
  g_object_set (net, "training", TRUE, NULL);
  g_assert_true (gtorch_module_get_training (net->inner));
  g_assert_cmpuint (n, ==, 2);
}

static void
state_shares_and_loads (void)
{
  g_autoptr (TestNet) net = net_new ();
  g_autoptr (TestNet) other = net_new ();
  g_autoptr (GHashTable) state = gtorch_module_state_dict (GTORCH_MODULE (net));
  GTorchTensor *weight = g_hash_table_lookup (state, "inner.weight");
  GTorchTensor *target = test_parameter (GTORCH_MODULE (other), "inner.weight");
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (g_hash_table_size (state), ==, 4);
  g_assert_null (g_hash_table_lookup (state, "scratch"));
  g_assert_true (
      gtorch_tensor_shares_storage (weight, test_parameter (GTORCH_MODULE (net), "inner.weight")));
  g_assert_false (gtorch_tensor_get_requires_grad (weight));

  g_assert_cmpfloat (at (weight, 1), !=, at (target, 1));
  g_assert_true (gtorch_module_load_state_dict (GTORCH_MODULE (other), state, TRUE, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (at (weight, 1), ==, at (target, 1));
  g_assert_false (gtorch_tensor_shares_storage (weight, GTORCH_TENSOR (target)));
  g_assert_true (gtorch_tensor_get_requires_grad (GTORCH_TENSOR (target)));
}

static void
loading_lists_all_faults_and_changes_nothing (void)
{
  g_autoptr (TestNet) net = net_new ();
  g_autoptr (GHashTable) state = gtorch_module_state_dict (GTORCH_MODULE (net));
  g_autoptr (GError) error = NULL;
  GTorchTensor *scale = test_parameter (GTORCH_MODULE (net), "scale");

  g_hash_table_remove (state, "inner.bias");
  g_hash_table_remove (state, "shift");
  g_hash_table_insert (state, g_strdup ("zebra"), full (1, 1));
  g_hash_table_insert (state, g_strdup ("ape"), full (1, 1));
  g_hash_table_insert (state, g_strdup ("scale"), full (2, 7));
  g_hash_table_insert (state, g_strdup ("inner.weight"), full (3, 1));
  g_assert_false (gtorch_module_load_state_dict (GTORCH_MODULE (net), state, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==,
                   "TestNet: load_state_dict: missing: shift, inner.bias; unexpected: ape, zebra; "
                   "inner.weight has shape [2, 3] in the module and [3] in the table");
  g_clear_error (&error);
  g_assert_false (gtorch_module_load_state_dict (GTORCH_MODULE (net), state, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_cmpfloat (at (scale, 0), ==, 2);
  g_hash_table_remove (state, "inner.weight");
  g_assert_true (gtorch_module_load_state_dict (GTORCH_MODULE (net), state, FALSE, &error));
  g_assert_cmpfloat (at (scale, 0), ==, 7);
}

static void
lists_of_the_state_load_like_its_table (void)
{
  g_autoptr (TestNet) net = net_new ();
  g_autoptr (TestNet) other = net_new ();
  g_auto (GStrv) names = NULL;
  g_auto (GStrv) expected = gtorch_module_get_state_names (GTORCH_MODULE (net));
  g_autoptr (GPtrArray) tensors = gtorch_module_state_lists (GTORCH_MODULE (net), &names);
  g_autoptr (GHashTable) state = gtorch_module_state_dict (GTORCH_MODULE (net));
  g_autoptr (GError) error = NULL;
  GTorchTensor *target = test_parameter (GTORCH_MODULE (other), "inner.weight");
  guint i;

  g_assert_true (g_strv_equal ((const gchar *const *) names, (const gchar *const *) expected));
  g_assert_cmpuint (tensors->len, ==, g_strv_length (names));
  for (i = 0; i < tensors->len; i++)
    g_assert_true (
        gtorch_tensor_shares_storage (tensors->pdata[i], g_hash_table_lookup (state, names[i])));

  g_assert_false (gtorch_module_load_state_lists (GTORCH_MODULE (other),
                                                  (const gchar *const *) names,
                                                  (GTorchTensor **) tensors->pdata,
                                                  tensors->len - 1, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "load_state_lists: 4 names and 3 tensors: there must be one name for each "
                   "tensor");
  g_clear_error (&error);
  g_assert_cmpfloat (at (target, 1), !=, at (g_hash_table_lookup (state, "inner.weight"), 1));
  g_assert_true (gtorch_module_load_state_lists (GTORCH_MODULE (other),
                                                 (const gchar *const *) names,
                                                 (GTorchTensor **) tensors->pdata, tensors->len,
                                                 TRUE, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (at (target, 1), ==, at (g_hash_table_lookup (state, "inner.weight"), 1));
}

static void
to_keeps_objects_and_converts_gradients (void)
{
  g_autoptr (TestNet) net = net_new ();
  GTorchTensor *scale = test_parameter (GTORCH_MODULE (net), "scale");
  g_autoptr (GTorchTensor) ones = full (2, 1);
  g_autoptr (GTorchTensor) indices = gtorch_arange (0, 3, 1, GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_module_register_buffer (GTORCH_MODULE (net), "indices", indices, TRUE, NULL);
  g_assert_true (gtorch_tensor_set_grad (scale, ones, &error));
  g_assert_true (gtorch_module_to (GTORCH_MODULE (net), NULL, GTORCH_DTYPE_FLOAT64, &error));
  g_assert_no_error (error);
  g_assert_true (test_parameter (GTORCH_MODULE (net), "scale") == scale);
  g_assert_cmpint (gtorch_tensor_get_dtype (scale), ==, GTORCH_DTYPE_FLOAT64);
  g_assert_cmpfloat (at (scale, 1), ==, 2);
  g_assert_true (gtorch_tensor_get_requires_grad (scale));
  grad = gtorch_tensor_get_grad (scale);
  g_assert_cmpint (gtorch_tensor_get_dtype (grad), ==, GTORCH_DTYPE_FLOAT64);
  g_assert_cmpint (gtorch_tensor_get_dtype (indices), ==, GTORCH_DTYPE_INT64);

  g_assert_false (gtorch_module_to (GTORCH_MODULE (net), NULL, GTORCH_DTYPE_INT32, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_cmpint (gtorch_tensor_get_dtype (scale), ==, GTORCH_DTYPE_FLOAT64);
}

static void
zero_grad_drops_or_zeroes (void)
{
  g_autoptr (TestNet) net = net_new ();
  GTorchTensor *scale = test_parameter (GTORCH_MODULE (net), "scale");
  g_autoptr (GTorchTensor) ones = full (2, 1);
  g_autoptr (GTorchTensor) grad = NULL;

  gtorch_tensor_set_grad (scale, ones, NULL);
  g_assert_true (gtorch_module_zero_grad (GTORCH_MODULE (net), FALSE, NULL));
  grad = gtorch_tensor_get_grad (scale);
  g_assert_cmpfloat (at (grad, 0), ==, 0);
  g_assert_true (gtorch_module_zero_grad (GTORCH_MODULE (net), TRUE, NULL));
  g_assert_null (gtorch_tensor_get_grad (scale));
}

static gboolean
append_name (GTorchModule *module, gpointer user_data, GError **error)
{
  g_string_append_printf (user_data, "%s ", G_OBJECT_TYPE_NAME (module));
  if (((GString *) user_data)->len < 40)
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "enough");
  return FALSE;
}

static void
apply_visits_inner_ones_first (void)
{
  g_autoptr (TestNet) net = net_new ();
  g_autoptr (GString) names = g_string_new (NULL);

  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_module_apply (GTORCH_MODULE (net), append_name, names, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (names->str, ==, "GTorchLinear TestNet ");
  g_assert_false (gtorch_module_apply (GTORCH_MODULE (net), append_name, names, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_assert_cmpstr (names->str, ==, "GTorchLinear TestNet GTorchLinear TestNet ");
}

static void
to_string_is_a_tree (void)
{
  g_autoptr (TestNet) net = net_new ();
  g_autofree gchar *text = gtorch_module_to_string (GTORCH_MODULE (net));

  g_assert_cmpstr (text, ==,
                   "TestNet(\n  (inner): Linear(in_features=3, out_features=2, bias=True)\n)");
}

static void
frozen_modules_require_no_grad (void)
{
  g_autoptr (TestNet) net = net_new ();
  g_autoptr (GTorchTensor) x = full (3, 1);
  g_autoptr (GTorchTensor) y = NULL;

  g_assert_true (gtorch_module_set_requires_grad (GTORCH_MODULE (net), FALSE, NULL));
  y = gtorch_module_forward (GTORCH_MODULE (net), x, NULL);
  g_assert_false (gtorch_tensor_get_requires_grad (y));
  g_assert_cmpint (gtorch_module_count_parameters (GTORCH_MODULE (net), TRUE), ==, 0);
}

static GPtrArray *
double_input (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer user_data,
              GError **error)
{
  GPtrArray *doubled = g_ptr_array_new ();
  gsize i;

  (*(guint *) user_data)++;
  for (i = 0; i < n_inputs; i++)
    g_ptr_array_add (doubled, gtorch_tensor_mul_scalar (inputs[i], 2, NULL));
  return doubled;
}

static GTorchTensor *
watch_output (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
              gpointer user_data, GError **error)
{
  *(gdouble *) user_data = at (inputs[n_inputs - 1], 0);
  return NULL;
}

static GTorchTensor *
fail_after (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
            gpointer user_data, GError **error)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "not now");
  return user_data != NULL ? g_object_ref (output) : NULL;
}

static GPtrArray *
fail_before (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer user_data,
             GError **error)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "not now");
  return user_data != NULL ? g_ptr_array_new () : NULL;
}

/* Each hook is also tried with a result that it returns nevertheless. */
static void
failing_hooks_fail_the_call (void)
{
  GTorchModule *modules[] = { GTORCH_MODULE (gtorch_identity_new ()),
                              GTORCH_MODULE (gtorch_mse_loss_new ()) };
  g_autoptr (GTorchTensor) x = full (2, 3);
  GTorchTensor *inputs[] = { x, x };
  guint i, k;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchModule) module = modules[i];
      g_autoptr (GTorchTensor) last = NULL;

      for (k = 0; k < 4; k++)
        {
          g_autoptr (GError) error = NULL;
          g_autoptr (GTorchTensor) y = NULL;
          gpointer data = k % 2 == 0 ? NULL : &k;
          guint64 id =
              k < 2 ? gtorch_module_register_forward_hook (module, fail_after, data, NULL)
                    : gtorch_module_register_forward_pre_hook (module, fail_before, data, NULL);

          g_assert_true (gtorch_module_has_hooks (module));
          if (i == 0)
            y = gtorch_module_forward (module, x, &error);
          else
            y = gtorch_loss_forward (GTORCH_LOSS (module), x, x, &error);
          g_assert_null (y);
          g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
          g_assert_true (gtorch_module_remove_hook (module, id));
          g_assert_false (gtorch_module_has_hooks (module));
        }
      last = gtorch_module_forward_many (module, inputs, i + 1, NULL);
      g_assert_nonnull (last);
    }
}

/* The hook runs once, whichever function makes the call. */
static void
hooks_see_all_inputs (void)
{
  g_autoptr (GTorchModule) loss = GTORCH_MODULE (gtorch_mse_loss_new ());
  g_autoptr (GTorchTensor) x = full (2, 3);
  g_autoptr (GTorchTensor) y = full (2, 5);
  GTorchTensor *inputs[] = { x, y };
  guint n = 0, i;
  gdouble seen = 0;

  gtorch_module_register_forward_pre_hook (loss, double_input, &n, NULL);
  gtorch_module_register_forward_hook (loss, watch_output, &seen, NULL);
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) value = i == 0
                                           ? gtorch_module_forward_many (loss, inputs, 2, NULL)
                                           : gtorch_loss_forward (GTORCH_LOSS (loss), x, y, NULL);

      g_assert_cmpfloat (gtorch_tensor_item_double (value, NULL), ==, 16);
      g_assert_cmpuint (n, ==, i + 1);
      g_assert_cmpfloat (seen, ==, 10);
    }
}

static void
count_destroyed (gpointer data)
{
  (*(guint *) data) += 100;
}

static void
hooks_see_and_replace (void)
{
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_identity_new ());
  g_autoptr (GTorchTensor) x = full (2, 3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  guint n = 0;
  gdouble seen = 0;
  guint64 id = gtorch_module_register_forward_pre_hook (module, double_input, &n, count_destroyed);

  gtorch_module_register_forward_hook (module, watch_output, &seen, NULL);
  y = gtorch_module_forward (module, x, NULL);
  g_assert_cmpfloat (at (y, 0), ==, 6);
  g_assert_cmpfloat (seen, ==, 6);
  g_assert_true (gtorch_module_remove_hook (module, id));
  g_assert_false (gtorch_module_remove_hook (module, id));
  g_assert_cmpuint (n, ==, 101);
  z = gtorch_module_forward (module, x, NULL);
  g_assert_cmpfloat (at (z, 0), ==, 3);
}

typedef struct
{
  GMainLoop *loop;
  GTorchTensor *output;
  GError *error;
} Waiting;

static void
forward_finished (GObject *object, GAsyncResult *result, gpointer user_data)
{
  Waiting *waiting = user_data;

  waiting->output = gtorch_module_forward_finish (GTORCH_MODULE (object), result, &waiting->error);
  g_main_loop_quit (waiting->loop);
}

static void
forward_async_gives_the_same (void)
{
  g_autoptr (TestNet) net = net_new ();
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (64, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) y = gtorch_module_forward (GTORCH_MODULE (net), x, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Waiting waiting = { loop, NULL, NULL };

  gtorch_module_forward_async (GTORCH_MODULE (net), x, NULL, forward_finished, &waiting);
  g_main_loop_run (loop);
  g_assert_no_error (waiting.error);
  g_assert_cmpfloat (at (waiting.output, 127), ==, at (y, 127));
  g_clear_object (&waiting.output);

  net->mode = MODE_ERROR;
  gtorch_module_forward_async (GTORCH_MODULE (net), x, NULL, forward_finished, &waiting);
  g_main_loop_run (loop);
  g_assert_error (waiting.error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&waiting.error);

  g_cancellable_cancel (cancellable);
  gtorch_module_forward_async (GTORCH_MODULE (net), x, cancellable, forward_finished, &waiting);
  g_main_loop_run (loop);
  g_assert_error (waiting.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&waiting.error);
}

static void
modules_are_freed_with_what_they_hold (void)
{
  GTorchModule *net = GTORCH_MODULE (net_new ());
  GTorchTensor *weight = test_parameter (net, "inner.weight");
  gpointer weak = weight;

  g_object_add_weak_pointer (G_OBJECT (weight), &weak);
  g_object_unref (net);
  g_assert_null (weak);
}

static void
parameters_refuse_integers_and_released_tensors (void)
{
  g_autoptr (GTorchTensor) x = gtorch_arange (0, 3, 1, GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchParameter) frozen = gtorch_parameter_new (x, FALSE, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_nonnull (frozen);
  g_assert_null (gtorch_parameter_new (x, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_clear_error (&error);
  gtorch_tensor_release (x);
  g_assert_null (gtorch_parameter_new (x, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
}

#define ADD(name) g_test_add_func ("/GTorch/Module/" #name, name)

static gboolean
count_module (GTorchModule *module, gpointer user_data, GError **error)
{
  ++*(guint *) user_data;
  return TRUE;
}

/* The stack would not suffice for functions that call themselves for each level, nor for destructors
 * that do. */
static gpointer
use_deep_tree (gpointer data)
{
  const guint depth = 100000;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) root = g_object_new (GTORCH_TYPE_SEQUENTIAL, NULL);
  g_autoptr (GTorchTensor) x = full (3, 1);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GListModel) modules = NULL;
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchTensor) bias = NULL;
  g_autoptr (GHashTable) state = NULL;
  g_autofree gchar *text = NULL;
  g_auto (GStrv) names = NULL;
  GTorchModule *last = root;
  guint n = 0;

  for (guint i = 0; i < depth; i++)
    {
      g_autoptr (GTorchModule) next = i + 1 < depth
                                          ? g_object_new (GTORCH_TYPE_SEQUENTIAL, NULL)
                                          : GTORCH_MODULE (gtorch_linear_new (3, 2, NULL));

      g_assert_true (gtorch_module_register_module (last, "0", next, &error));
      last = next;
    }
  modules = gtorch_module_get_modules (root);
  g_assert_cmpuint (g_list_model_get_n_items (modules), ==, depth + 1);
  parameters = gtorch_module_get_parameters (root, TRUE);
  g_assert_cmpuint (g_list_model_get_n_items (parameters), ==, 2);
  names = gtorch_module_get_parameter_names (root, TRUE);
  g_assert_cmpuint (strlen (names[1]), ==, 2 * depth + strlen ("bias"));
  gtorch_module_eval (root);
  g_assert_false (gtorch_module_get_training (last));
  g_assert_true (gtorch_module_to (root, NULL, GTORCH_DTYPE_FLOAT64, &error));
  bias = g_list_model_get_item (parameters, 1);
  g_assert_cmpint (gtorch_tensor_get_dtype (bias), ==, GTORCH_DTYPE_FLOAT64);
  g_assert_true (gtorch_module_apply (root, count_module, &n, &error));
  g_assert_cmpuint (n, ==, depth + 1);
  state = gtorch_module_state_dict (root);
  g_assert_cmpuint (g_hash_table_size (state), ==, 2);
  g_assert_true (gtorch_module_load_state_dict (root, state, TRUE, &error));
  g_assert_true (gtorch_module_zero_grad (root, TRUE, &error));
  text = gtorch_module_to_string (root);
  g_assert_nonnull (strstr (text, "(0): Sequential(…)"));
  y = gtorch_module_forward (root, x, &error);
  g_assert_null (y);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "of the thread's stack are left"));
  g_clear_object (&modules);
  g_object_add_weak_pointer (G_OBJECT (last), (gpointer *) &last);
  g_clear_object (&root);
  g_assert_null (last);
  return NULL;
}

static void
deep_trees_need_no_stack (void)
{
#ifdef __SANITIZE_THREAD__
  if (TRUE)
    {
      g_test_skip ("ThreadSanitizer follows at most 65,536 functions within one another");
      return;
    }
#endif
  g_thread_join (g_thread_new ("deep", use_deep_tree, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (forward_runs_the_override);
  ADD (forward_many_stands_for_forward);
  ADD (forward_without_tensor_or_error_is_an_error);
  ADD (forward_of_the_base_class_is_an_error);
  ADD (members_are_listed_in_order);
  ADD (shared_parameters_are_listed_once);
  ADD (registering_checks_names);
  ADD (names_are_utf8);
  ADD (members_are_found_by_path);
  ADD (training_reaches_all_and_notifies);
  ADD (state_shares_and_loads);
  ADD (loading_lists_all_faults_and_changes_nothing);
  ADD (lists_of_the_state_load_like_its_table);
  ADD (to_keeps_objects_and_converts_gradients);
  ADD (zero_grad_drops_or_zeroes);
  ADD (apply_visits_inner_ones_first);
  ADD (to_string_is_a_tree);
  ADD (frozen_modules_require_no_grad);
  ADD (hooks_see_and_replace);
  ADD (hooks_see_all_inputs);
  ADD (failing_hooks_fail_the_call);
  ADD (forward_async_gives_the_same);
  ADD (modules_are_freed_with_what_they_hold);
  ADD (parameters_refuse_integers_and_released_tensors);
  ADD (deep_trees_need_no_stack);
  return g_test_run ();
}
