/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Objects that are disposed, or that have lost objects that they need: a binding keeps them as long as it
 * likes, and calls them. So these are not mistakes that only C programs can make. */

#include "config.h"

#include <gio/gio.h>

#include "refuse.h"

#define SHAPE GTORCH_SHAPE (2, 3)

/* These are singletons. */
static const gchar *const shared[] = {
  "GTorchAllocator",    "GTorchDevice",        "GTorchDeviceManager",
  "GTorchFFTPlanCache", "GTorchHostAllocator", NULL,
};

static gboolean
is_object (const Param *param)
{
  return param->get_type != NULL && G_TYPE_IS_OBJECT (param->get_type ())
         && !g_strv_contains (shared, param->type);
}

static gpointer
make (const gchar *type, GType (*get_type) (void))
{
  const Param param = {
    .kind = PARAM_OBJECT, .name = "object", .type = type, .get_type = get_type
  };

  return refuse_make (&param);
}

static gpointer
make_tensor (void)
{
  return make ("GTorchTensor", gtorch_tensor_get_type);
}

static gpointer
make_parameter (void)
{
  return make ("GTorchParameter", gtorch_parameter_get_type);
}

/* --- tensors --- */

static gpointer
release (gpointer tensor)
{
  gtorch_tensor_release (tensor);
  return tensor;
}

static gpointer
make_leaf (void)
{
  GTorchTensor *leaf = make_tensor ();

  gtorch_tensor_set_requires_grad (leaf, TRUE, NULL);
  return leaf;
}

static gpointer
make_result (GTorchTensor *leaf)
{
  return gtorch_tensor_mul (leaf, leaf, NULL);
}

static gpointer
released_leaf (void)
{
  return release (make_leaf ());
}

static gpointer
released_result (void)
{
  g_autoptr (GTorchTensor) leaf = make_leaf ();

  return release (make_result (leaf));
}

static gpointer
released_input (void)
{
  g_autoptr (GTorchTensor) leaf = make_leaf ();
  GTorchTensor *result = make_result (leaf);

  gtorch_tensor_release (leaf);
  return result;
}

static gpointer
released_gradient (void)
{
  GTorchTensor *leaf = make_leaf ();
  g_autoptr (GTorchTensor) grad = make_tensor ();

  gtorch_tensor_set_grad (leaf, grad, NULL);
  gtorch_tensor_release (grad);
  return leaf;
}

static gpointer
released_view (void)
{
  g_autoptr (GTorchTensor) base = make_tensor ();

  return release (gtorch_tensor_view (base, SHAPE, NULL));
}

static gpointer
view_of_released (void)
{
  g_autoptr (GTorchTensor) base = make_tensor ();
  GTorchTensor *view = gtorch_tensor_view (base, SHAPE, NULL);

  gtorch_tensor_release (base);
  return view;
}

static gpointer
released_parameter (void)
{
  return release (make_parameter ());
}

/* --- modules and optimizers --- */

static void
release_all (GListModel *tensors)
{
  guint i;

  for (i = 0; i < g_list_model_get_n_items (tensors); i++)
    g_object_unref (release (g_list_model_get_item (tensors, i)));
}

static gpointer
empty_out (gpointer module)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (module, TRUE);
  g_autoptr (GListModel) buffers = gtorch_module_get_buffers (module, TRUE);

  release_all (parameters);
  release_all (buffers);
  return module;
}

static gpointer
empty_module (void)
{
  return empty_out (make ("GTorchModule", gtorch_module_get_type));
}

static gpointer
empty_norm (void)
{
  return empty_out (gtorch_batch_norm2d_new (3, NULL));
}

static gpointer
empty_sequential (void)
{
  return empty_out (make ("GTorchSequential", gtorch_sequential_get_type));
}

static gpointer
sequential_of_disposed (void)
{
  GTorchSequential *self = make ("GTorchSequential", gtorch_sequential_get_type);
  GListModel *children = gtorch_module_get_children (GTORCH_MODULE (self));
  g_autoptr (GObject) child = g_list_model_get_item (children, 0);

  g_object_run_dispose (child);
  return self;
}

static gpointer
empty_graphed_module (void)
{
  return empty_out (make ("GTorchGraphedModule", gtorch_graphed_module_get_type));
}

static gpointer
loss_of_released (void)
{
  g_autoptr (GTorchTensor) weight =
      gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  gpointer self = g_object_new (GTORCH_TYPE_NLL_LOSS, "weight", weight, NULL);

  gtorch_tensor_release (weight);
  return self;
}

static gpointer
make_stepped (void)
{
  GTorchOptimizer *self = make ("GTorchOptimizer", gtorch_optimizer_get_type);
  g_autoptr (GTorchParamGroup) group =
      g_list_model_get_item (gtorch_optimizer_get_param_groups (self), 0);
  g_autoptr (GTorchTensor) param = g_list_model_get_item (gtorch_param_group_get_params (group), 0);
  g_autoptr (GTorchTensor) grad = make_tensor ();

  gtorch_tensor_set_grad (param, grad, NULL);
  gtorch_optimizer_step (self, NULL);
  return self;
}

static GTorchTensor *
dup_param (GTorchOptimizer *self)
{
  g_autoptr (GTorchParamGroup) group =
      g_list_model_get_item (gtorch_optimizer_get_param_groups (self), 0);

  return g_list_model_get_item (gtorch_param_group_get_params (group), 0);
}

static gpointer
optimizer_of_released (void)
{
  GTorchOptimizer *self = make_stepped ();
  g_autoptr (GTorchTensor) param = dup_param (self);

  gtorch_tensor_release (param);
  return self;
}

static gpointer
optimizer_of_released_grads (void)
{
  GTorchOptimizer *self = make_stepped ();
  g_autoptr (GTorchTensor) param = dup_param (self);
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (param);

  gtorch_tensor_release (grad);
  return self;
}

static gpointer
optimizer_of_released_states (void)
{
  GTorchOptimizer *self = make_stepped ();
  g_autoptr (GHashTable) states = gtorch_optimizer_state_dict (self);
  GHashTableIter iter;
  gpointer state;

  g_hash_table_iter_init (&iter, states);
  while (g_hash_table_iter_next (&iter, NULL, &state))
    gtorch_tensor_release (state);
  return self;
}

static gpointer
optimizer_of_disposed (void)
{
  GTorchOptimizer *self = make_stepped ();
  g_autoptr (GTorchParamGroup) group =
      g_list_model_get_item (gtorch_optimizer_get_param_groups (self), 0);
  g_autoptr (GTorchTensor) param = dup_param (self);

  g_object_run_dispose (G_OBJECT (group));
  g_object_run_dispose (G_OBJECT (param));
  return self;
}

static gpointer
group_of_released (void)
{
  GTorchParamGroup *self = make ("GTorchParamGroup", gtorch_param_group_get_type);

  release_all (gtorch_param_group_get_params (self));
  return self;
}

static gpointer
used_scaler (void)
{
  GTorchGradScaler *self = make ("GTorchGradScaler", gtorch_grad_scaler_get_type);
  g_autoptr (GTorchTensor) loss = make_tensor ();
  g_autoptr (GTorchTensor) scaled = gtorch_grad_scaler_scale (self, loss, NULL);
  g_autoptr (GTorchTensor) scale = gtorch_grad_scaler_get_scale_tensor (self);

  gtorch_tensor_release (scale);
  return self;
}

/* --- streams and graphs --- */

static gpointer
stream_with_work (void)
{
  GTorchStream *self = make ("GTorchStream", gtorch_stream_get_type);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (self);
  g_autoptr (GTorchTensor) x = make_tensor ();
  g_autoptr (GTorchTensor) twice = gtorch_tensor_add (x, x, 1, NULL);

  return self;
}

static gpointer
event_of_disposed (void)
{
  GTorchEvent *self = make ("GTorchEvent", gtorch_event_get_type);
  g_autoptr (GTorchStream) stream = make ("GTorchStream", gtorch_stream_get_type);

  gtorch_event_record (self, stream, NULL);
  g_object_run_dispose (G_OBJECT (stream));
  return self;
}

static gboolean
add (GTorchStream *stream, gpointer data, GError **error)
{
  g_autoptr (GTorchTensor) sum = gtorch_tensor_add (data, data, 1, error);

  return sum != NULL;
}

static GTorchCUDAGraph *
make_captured (GTorchTensor *tensor)
{
  GTorchCUDAGraph *self = make ("GTorchCUDAGraph", gtorch_cuda_graph_get_type);
  g_autoptr (GTorchStream) stream = make ("GTorchStream", gtorch_stream_get_type);

  gtorch_cuda_graph_capture (self, stream, NULL, add, tensor, NULL);
  return self;
}

static gpointer
captured_graph (void)
{
  g_autoptr (GTorchTensor) tensor = make_tensor ();

  return make_captured (tensor);
}

static gpointer
graph_of_released (void)
{
  g_autoptr (GTorchTensor) tensor = make_tensor ();
  GTorchCUDAGraph *self = make_captured (tensor);

  gtorch_tensor_release (tensor);
  return self;
}

static gpointer
reset_graph (void)
{
  GTorchCUDAGraph *self = captured_graph ();

  gtorch_cuda_graph_reset (self, NULL);
  return self;
}

static gpointer
ended_capture (void)
{
  GTorchGraphCapture *self = make ("GTorchGraphCapture", gtorch_graph_capture_get_type);

  gtorch_graph_capture_end (self, NULL);
  return self;
}

/* --- others --- */

static gpointer
started_timer (void)
{
  GTorchTimer *self = make ("GTorchTimer", gtorch_timer_get_type);

  gtorch_timer_start (self, NULL);
  return self;
}

static gpointer
released_block (void)
{
  GTorchMemoryBlock *self = make ("GTorchMemoryBlock", gtorch_memory_block_get_type);

  gtorch_memory_block_release (self);
  return self;
}

static gpointer
ended_scope (void)
{
  GTorchScope *self = make ("GTorchScope", gtorch_scope_get_type);

  gtorch_scope_end (self);
  return self;
}

static gpointer
pool_in_use (void)
{
  GTorchMemoryPool *self = make ("GTorchMemoryPool", gtorch_memory_pool_get_type);
  g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (self);
  static GTorchTensor *user;

  g_clear_object (&user);
  user = make_tensor ();
  return self;
}

static gpointer
list_of_released (void)
{
  GListStore *list = g_list_store_new (GTORCH_TYPE_PARAMETER);
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) parameter = make_parameter ();

      if (i == 0)
        gtorch_tensor_release (parameter);
      g_list_store_append (list, parameter);
    }
  return list;
}

static gpointer
list_of_disposed (void)
{
  GListStore *list = g_list_store_new (GTORCH_TYPE_PARAMETER);
  g_autoptr (GTorchTensor) parameter = make_parameter ();

  g_object_run_dispose (G_OBJECT (parameter));
  g_list_store_append (list, parameter);
  return list;
}

static gpointer
table_of (gpointer tensor)
{
  GHashTable *table = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);

  g_hash_table_insert (table, g_strdup ("weight"), tensor);
  return table;
}

static gpointer
table_of_released (void)
{
  return table_of (release (make_tensor ()));
}

static gpointer
table_of_disposed (void)
{
  GTorchTensor *tensor = make_tensor ();

  g_object_run_dispose (G_OBJECT (tensor));
  return table_of (tensor);
}

static const struct
{
  const gchar *type;
  const gchar *what;
  gpointer (*make) (void);
} states[] = {
  { "GHashTable", "has a disposed tensor", table_of_disposed },
  { "GHashTable", "has a released tensor", table_of_released },
  { "GListModel", "has a disposed parameter", list_of_disposed },
  { "GListModel", "has a released parameter and another", list_of_released },
  { "GTorchCUDAGraph", "is captured", captured_graph },
  { "GTorchCUDAGraph", "is captured, and its input released", graph_of_released },
  { "GTorchCUDAGraph", "is reset", reset_graph },
  { "GTorchEvent", "has a disposed stream", event_of_disposed },
  { "GTorchGradScaler", "has a released scale", used_scaler },
  { "GTorchGraphCapture", "is ended", ended_capture },
  { "GTorchGraphedModule", "has released parameters", empty_graphed_module },
  { "GTorchLoss", "has a released weight", loss_of_released },
  { "GTorchMemoryBlock", "is released", released_block },
  { "GTorchMemoryPool", "is in use", pool_in_use },
  { "GTorchModule", "has released buffers", empty_norm },
  { "GTorchModule", "has released parameters", empty_module },
  { "GTorchModule", "has released parameters inside", empty_sequential },
  { "GTorchModule", "has a disposed module", sequential_of_disposed },
  { "GTorchOptimizer", "has disposed parameters", optimizer_of_disposed },
  { "GTorchOptimizer", "has released gradients", optimizer_of_released_grads },
  { "GTorchOptimizer", "has released parameters", optimizer_of_released },
  { "GTorchOptimizer", "has released states", optimizer_of_released_states },
  { "GTorchParamGroup", "has released parameters", group_of_released },
  { "GTorchParameter", "is released", released_parameter },
  { "GTorchScope", "is ended", ended_scope },
  { "GTorchSequential", "has a disposed module", sequential_of_disposed },
  { "GTorchSequential", "has released parameters", empty_sequential },
  { "GTorchStream", "has work", stream_with_work },
  { "GTorchTensor", "has a released gradient", released_gradient },
  { "GTorchTensor", "is a released leaf", released_leaf },
  { "GTorchTensor", "is a released result", released_result },
  { "GTorchTensor", "is a released view", released_view },
  { "GTorchTensor", "is computed from what is released", released_input },
  { "GTorchTensor", "is the view of what is released", view_of_released },
  { "GTorchTimer", "is started", started_timer },
};

gpointer
refuse_make_state (const Param *param, guint m, const gchar **what)
{
  g_autoptr (GTorchTensor) probe = make_tensor ();
  gpointer object;
  guint i;

  if (probe == NULL)
    return NULL; /* no such object can be created */
  if (is_object (param) && m-- == 0)
    {
      *what = "is disposed";
      object = refuse_make (param);
      if (object != NULL)
        g_object_run_dispose (object);
      return object;
    }
  for (i = 0; i < G_N_ELEMENTS (states); i++)
    if (g_str_equal (states[i].type, param->type) && m-- == 0)
      {
        *what = states[i].what;
        return states[i].make ();
      }
  return NULL;
}
