/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "autograd/gtorch-function.h"

#include <glib/gi18n-lib.h>

#include "dispatch/gtorch-autocast-private.h"
#include "base/gtorch-callback-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-observer-named-private.h"
#include "autograd/gtorch-function-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "base/gtorch-references-private.h"
#include "base/gtorch-stack-private.h"
#include "stream/gtorch-stream-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchFunction:
 *
 * A differentiable function of one's own, in any language.
 *
 * A subclass overrides forward, which computes outputs from inputs, and backward, which computes gradients of
 * the inputs from those of the outputs. [method@Function.apply] calls the one and records the other.
 * [func@gradcheck_function] tells whether they agree. An object may be used any number of times: what belongs
 * to one call is kept in its [class@FunctionContext].
 *
 * ```c
 * static GPtrArray *
 * my_square_backward (GTorchFunction *self, GTorchFunctionContext *context, GTorchTensor **grad_outputs,
 *                     gsize n_grad_outputs, GError **error)
 * {
 *   g_autoptr (GPtrArray) saved = gtorch_function_context_get_saved_tensors (context, error);
 *   g_autoptr (GTorchTensor) twice =
 *       saved != NULL ? gtorch_tensor_mul_scalar (saved->pdata[0], 2, error) : NULL;
 *   GTorchTensor *grad = twice != NULL ? gtorch_tensor_mul (grad_outputs[0], twice, error) : NULL;
 *   GPtrArray *grads;
 *
 *   if (grad == NULL)
 *     return NULL;
 *   grads = g_ptr_array_new_with_free_func (g_object_unref);
 *   g_ptr_array_add (grads, grad);
 *   return grads;
 * }
 * ```
 *
 * In a region of [struct@AutocastGuard] forward finds autocast as it is there, and so does backward, whenever
 * it runs; [property@Function:cast-inputs] is for functions that must compute in one dtype.
 *
 * Since: 0.1
 */

typedef struct
{
  GTorchDType cast_inputs;
} GTorchFunctionPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GTorchFunction, gtorch_function, G_TYPE_OBJECT)

static GTorchFunctionPrivate *
private_of (GTorchFunction *self)
{
  return gtorch_function_get_instance_private (self);
}

static GPtrArray *
lacks (GTorchFunction *self, const gchar *what, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("%s: there is no %s"),
               G_OBJECT_TYPE_NAME (self), what);
  return NULL;
}

static GPtrArray *
gtorch_function_real_forward (GTorchFunction *self, GTorchFunctionContext *context,
                              GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  return lacks (self, "forward", error);
}

static GPtrArray *
gtorch_function_real_backward (GTorchFunction *self, GTorchFunctionContext *context,
                               GTorchTensor **grad_outputs, gsize n_grad_outputs, GError **error)
{
  return lacks (self, "backward", error);
}

typedef GTorchFunction Self;

static const GTorchField fields[] = {
  /**
   * GTorchFunction:cast-inputs:
   *
   * The floating-point dtype that the function must compute in, or %GTORCH_DTYPE_NONE.
   *
   * In a region of [struct@AutocastGuard] forward gets its floating-point inputs cast to it, those of float64
   * apart, and autocast is off in forward and backward. Outside of regions this changes nothing.
   *
   * Since: 0.1
   */
  { "cast-inputs",
    GTORCH_PROPERTY_ENUM (GTorchDType, gtorch_dtype_get_type, gtorch_function_get_cast_inputs,
                          gtorch_function_set_cast_inputs),
    .value = GTORCH_DTYPE_NONE },
};

static void
gtorch_function_class_init (GTorchFunctionClass *klass)
{
  GTORCH_FIELDS (klass, fields);
  klass->forward = gtorch_function_real_forward;
  klass->backward = gtorch_function_real_backward;
}

static void
gtorch_function_init (GTorchFunction *self)
{
}

typedef struct
{
  GTorchNode node;
  GTorchFunction *function;
  GTorchFunctionContext *context;
  GTorchMeta *input_metas;
  GTorchAutocastRegion autocast; /* what forward found */
} FunctionNode;

/* Takes what a vfunc gave: its elements are ours; from another language the array has no free function. */
static GTorchTensor **
take_tensors (GPtrArray *array, gsize *n)
{
  gpointer *elements = g_ptr_array_steal (array, n);

  g_ptr_array_unref (array);
  return (GTorchTensor **) elements;
}

static void
free_tensors (GTorchTensor **tensors, gsize n)
{
  gsize i;

  for (i = 0; i < n; i++)
    g_clear_object (&tensors[i]);
  g_free (tensors);
}

static void
error_nothing (GTorchFunction *self, const gchar *what, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
               _ ("%s: %s gave nothing and set no error; an exception that is not a GError may "
                  "have been printed"),
               G_OBJECT_TYPE_NAME (self), what);
}

/* An error is one, whatever came with it. */
static gboolean
check_result (GTorchFunction *self, const gchar *what, GPtrArray *result, GError *failure,
              GError **error)
{
  GTorchTensor **tensors;
  gsize n;

  if (result != NULL && failure == NULL)
    return TRUE;
  if (failure == NULL)
    error_nothing (self, what, &failure);
  if (result != NULL)
    {
      tensors = take_tensors (result, &n);
      free_tensors (tensors, n);
    }
  g_propagate_error (error, failure);
  return FALSE;
}

/* --- backward --- */

typedef struct
{
  FunctionNode *node;
  GTorchTensor **grads;
  GPtrArray *result;
  GError *error;
} BackwardCall;

static void
call_backward (gpointer data)
{
  BackwardCall *call = data;
  GTorchFunction *function = call->node->function;
  GTorchFunctionClass *klass = GTORCH_FUNCTION_GET_CLASS (function);
  GTorchChange change;

  gtorch_autocast_change_to (&change, &call->node->autocast);
  gtorch_thread.n_regions++;
  call->result = klass->backward (function, call->node->context, call->grads,
                                  call->node->node.n_outputs, &call->error);
  gtorch_change_end (&change);
  gtorch_autocast_region_ended ();
}

static gboolean
spread_results (FunctionNode *self, GTorchTensor **grads, gsize n, const gboolean *needs,
                GTorchImpl **results, GError **error)
{
  guint n_needed = 0, i, j = 0;
  gboolean all;

  for (i = 0; i < self->node.n_edges; i++)
    n_needed += self->context->needs[i] != FALSE;
  all = n == self->node.n_edges;
  if (!all && n != n_needed)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("%s: backward gave %zu gradients for %u inputs, of which %u "
                      "need one"),
                   self->node.name, n, self->node.n_edges, n_needed);
      return FALSE;
    }
  for (i = 0; i < self->node.n_edges; i++)
    {
      GTorchTensor *grad = all ? grads[i] : (self->context->needs[i] ? grads[j++] : NULL);

      if (grad == NULL || !needs[i])
        continue;
      if (!GTORCH_IS_TENSOR (grad) || gtorch_tensor_unwrap (grad)->storage == NULL
          || gtorch_impl_device (grad->impl) != self->input_metas[i].device)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("%s: gradient %u is not a tensor on the device of its input"),
                       self->node.name, i);
          return FALSE;
        }
      results[i] = gtorch_grad_fit (gtorch_impl_ref (grad->impl), &self->input_metas[i], error);
      if (results[i] == NULL)
        {
          g_prefix_error (error, _ ("gradient %u: "), i);
          return FALSE;
        }
    }
  return TRUE;
}

static gboolean
function_node_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
                     GTorchImpl **results, GError **error)
{
  FunctionNode *self = (FunctionNode *) node;
  BackwardCall call = { .node = self };
  GTorchTensor **given;
  gboolean success = TRUE;
  gsize n;
  guint i;

  if (node->is_released)
    {
      gtorch_node_error_released (node, error);
      return FALSE;
    }
  call.grads = g_new0 (GTorchTensor *, MAX (node->n_outputs, 1));
  for (i = 0; success && i < node->n_outputs; i++)
    {
      const GTorchMeta *meta = &node->output_metas[i];
      GTorchImpl *grad = grads[i] != NULL ? gtorch_impl_ref (grads[i]) : NULL;

      if (grad == NULL && self->context->materialize)
        {
          grad = gtorch_op_zeros (meta->shape, meta->n_dims, meta->dtype, meta->device, error);
          success = grad != NULL;
        }
      call.grads[i] = gtorch_tensor_wrap (grad);
    }
  if (success)
    {
      gtorch_engine_call_user (call_backward, &call);
      success = check_result (self->function, "backward", call.result, call.error, error);
      if (success)
        {
          given = take_tensors (call.result, &n);
          success = spread_results (self, given, n, needs, results, error);
          free_tensors (given, n);
        }
    }
  free_tensors (call.grads, node->n_outputs);
  return success;
}

static void
function_node_release (GTorchNode *node)
{
  FunctionNode *self = (FunctionNode *) node;

  gtorch_function_context_drop (self->context, node);
}

static void
function_node_finalize (GTorchNode *node)
{
  FunctionNode *self = (FunctionNode *) node;
  guint i;

  self->context->node = NULL;
  self->context->n_saved = 0;
  for (i = 0; i < node->n_edges; i++)
    g_free ((gpointer) self->input_metas[i].shape);
  for (i = 0; i < node->n_outputs; i++)
    g_free ((gpointer) node->output_metas[i].shape);
  g_object_unref (self->context);
  g_object_unref (self->function);
  gtorch_references_count_data (-1);
}

static const GTorchNodeClass function_node_class = { function_node_apply, function_node_release,
                                                     function_node_finalize };

void
gtorch_function_node_add_references (GTorchNode *node, GTorchReferences *references)
{
  FunctionNode *self = (FunctionNode *) node;

  if (node->klass != &function_node_class)
    return;
  gtorch_references_add_object (references, self->function);
  gtorch_references_add_object (references, self->context);
}

/* --- forward --- */

static FunctionNode *
function_node_new (GTorchFunction *function, GTorchFunctionContext *context,
                   GTorchImpl *const *inputs, guint n_inputs, GTorchImpl *const *outputs,
                   guint n_outputs)
{
  FunctionNode *self = g_malloc0 (sizeof (FunctionNode) + n_inputs * sizeof (GTorchEdge)
                                  + (n_inputs + n_outputs) * sizeof (GTorchMeta));
  GTorchDevice *device = gtorch_impl_device (n_outputs > 0 ? outputs[0] : inputs[0]);
  guint i;

  gtorch_node_init (&self->node, &function_node_class, G_OBJECT_TYPE_NAME (function), n_inputs,
                    n_outputs);
  self->node.edges = (GTorchEdge *) (void *) (self + 1);
  self->input_metas = (GTorchMeta *) (void *) (self->node.edges + n_inputs);
  self->node.output_metas = self->input_metas + n_inputs;
  g_set_object (&self->node.stream, gtorch_current_stream (device));
  self->function = g_object_ref (function);
  self->context = g_object_ref (context);
  gtorch_references_count_data (1);
  for (i = 0; i < n_inputs; i++)
    {
      gtorch_meta_init (&self->input_metas[i], inputs[i], g_new (gint64, inputs[i]->n_dims + 1));
      gtorch_node_set_edge (&self->node, i, inputs[i]);
      if (self->input_metas[i].device != device)
        gtorch_node_add_place (&self->node, self->input_metas[i].device);
    }
  for (i = 0; i < n_outputs; i++)
    {
      gtorch_meta_init (&self->node.output_metas[i], outputs[i],
                        g_new (gint64, outputs[i]->n_dims + 1));
      if (self->node.output_metas[i].device != device)
        gtorch_node_add_place (&self->node, self->node.output_metas[i].device);
    }
  return self;
}

static gint
find (GTorchImpl *impl, GTorchImpl *const *impls, guint n)
{
  guint i;

  for (i = 0; i < n; i++)
    if (impls[i] == impl)
      return (gint) i;
  return -1;
}

static gboolean
contains (GPtrArray *list, GTorchImpl *impl)
{
  return g_ptr_array_find (list, impl, NULL);
}

/* An output that already was a tensor elsewhere is given as another tensor of the same memory, so that its
 * history stays its own. */
static gboolean
check_outputs (GTorchFunction *self, GTorchFunctionContext *context, GTorchTensor **tensors,
               gsize n, GTorchImpl *const *inputs, guint n_inputs, GTorchImpl **outputs,
               gboolean wanted, GError **error)
{
  gsize i, j;

  for (i = 0; i < n; i++)
    {
      GTorchImpl *impl = GTORCH_IS_TENSOR (tensors[i]) ? gtorch_tensor_unwrap (tensors[i]) : NULL;
      gboolean is_dirty = impl != NULL && contains (context->dirty, impl);

      if (impl == NULL || gtorch_impl_is_released (impl))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: output %zu of forward is not a tensor or was "
                          "released"),
                       G_OBJECT_TYPE_NAME (self), i);
          return FALSE;
        }
      if (!is_dirty && (find (impl, inputs, n_inputs) >= 0 || impl->autograd != NULL))
        outputs[i] = gtorch_impl_alias (impl);
      else
        outputs[i] = gtorch_impl_ref (impl);
      for (j = 0; j < i; j++)
        if (outputs[j] == outputs[i])
          {
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                         _ ("%s: outputs %zu and %zu of forward are the same tensor"),
                         G_OBJECT_TYPE_NAME (self), j, i);
            return FALSE;
          }
    }
  for (i = 0; i < context->dirty->len; i++)
    {
      GTorchImpl *impl = context->dirty->pdata[i];
      gint input = find (impl, inputs, n_inputs), output = find (impl, outputs, n);

      if (input < 0 || output < 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: a tensor of shape %s was marked dirty and is not both input and "
                          "output"),
                       G_OBJECT_TYPE_NAME (self), gtorch_impl_shape_str (impl));
          return FALSE;
        }
      if (wanted && impl->autograd != NULL && impl->autograd->base != NULL && input != output)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("%s: a view of shape %s that is changed in place must have the same "
                          "number as input and as output"),
                       G_OBJECT_TYPE_NAME (self), gtorch_impl_shape_str (impl));
          return FALSE;
        }
      if (!gtorch_autograd_check_in_place (G_OBJECT_TYPE_NAME (self), impl, wanted, error))
        return FALSE;
    }
  return TRUE;
}

/* Returns the number of the node in `sequence`. */
static gboolean
record (GTorchFunction *self, GTorchFunctionContext *context, GTorchImpl *const *inputs,
        guint n_inputs, GTorchImpl *const *outputs, guint n_outputs, GTorchTensor *const *tensors,
        const GTorchAutocastRegion *autocast, guint64 *sequence, GError **error)
{
  FunctionNode *node = function_node_new (self, context, inputs, n_inputs, outputs, n_outputs);
  guint i;

  node->autocast = *autocast;
  if (!gtorch_function_context_pack (context, &node->node, inputs, n_inputs, outputs, n_outputs,
                                     error))
    {
      gtorch_node_unref (&node->node);
      return FALSE;
    }
  for (i = 0; i < n_outputs; i++)
    {
      if (gtorch_dtype_kind (outputs[i]->dtype) < GTORCH_KIND_FLOAT
          || contains (context->constant, gtorch_tensor_unwrap (tensors[i])))
        continue;
      if (contains (context->dirty, outputs[i]))
        gtorch_autograd_rebase (outputs[i], &node->node, i);
      else
        gtorch_node_set_output (&node->node, i, outputs[i]);
    }
  *sequence = node->node.sequence;
  gtorch_node_unref (&node->node);
  return TRUE;
}

/* Forward ran with the grad mode off. What it made is nobody's view, but for what shows an input. */
static void
mark_views (GTorchFunctionContext *context, GTorchImpl *const *inputs, guint n_inputs,
            GTorchImpl *const *outputs, guint n_outputs)
{
  guint i, j;

  for (i = 0; i < n_outputs && gtorch_is_grad_enabled (); i++)
    {
      gboolean shows_input = FALSE;

      for (j = 0; j < n_inputs; j++)
        shows_input |= inputs[j]->storage == outputs[i]->storage;
      if (!contains (context->dirty, outputs[i]))
        outputs[i]->is_silent_view = shows_input;
    }
}

/* The inputs as forward is to get them, if it has a dtype of its own and one is in a region: new references.
 * NULL otherwise, or with an error. */
static GPtrArray *
cast_inputs (GTorchFunction *self, GTorchImpl *const *impls, gsize n, GError **error)
{
  GTorchDType dtype = private_of (self)->cast_inputs;
  g_autoptr (GPtrArray) result = NULL;
  gboolean in_region = FALSE;
  gsize i;

  if (dtype != GTORCH_DTYPE_NONE
      && ((guint) dtype >= GTORCH_N_DTYPES || gtorch_dtype_kind (dtype) != GTORCH_KIND_FLOAT))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: cast_inputs is %s, which is no floating-point dtype"),
                   G_OBJECT_TYPE_NAME (self),
                   (guint) dtype < GTORCH_N_DTYPES ? gtorch_dtype_get_name (dtype)
                                                   : _ ("no dtype"));
      return NULL;
    }
  for (i = 0; i < n && dtype != GTORCH_DTYPE_NONE && gtorch_autocast_is_on (); i++)
    in_region |= !gtorch_impl_is_released (impls[i])
                 && gtorch_is_autocast_enabled (gtorch_impl_device (impls[i])->type);
  if (!in_region)
    return NULL;
  result = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = 0; i < n; i++)
    {
      GTorchImpl *impl = impls[i];
      guint type = gtorch_impl_device (impl)->type;
      GTorchImpl *cast = impl->dtype != dtype && gtorch_autocast_takes (impl, type)
                                 && gtorch_is_autocast_enabled (type)
                             ? gtorch_op_to_dtype (impl, dtype, error)
                             : gtorch_impl_ref (impl);

      if (cast == NULL)
        return NULL;
      g_ptr_array_add (result, gtorch_tensor_wrap (cast));
    }
  return g_steal_pointer (&result);
}

/* Calls forward and records backward. Returns the outputs, n of them, as new references, or NULL. */
static GTorchImpl **
apply (GTorchFunction *self, GTorchTensor **inputs, GTorchImpl *const *impls, gsize n_inputs,
       gsize *n, guint64 *sequence, GError **error)
{
  g_autoptr (GTorchFunctionContext) context = NULL;
  g_autoptr (GPtrArray) cast = NULL;
  g_autoptr (GError) inner = NULL;
  g_autofree GTorchImpl **outputs = NULL;
  const gboolean wanted = gtorch_autograd_wanted (impls, n_inputs);
  GTorchAutocastRegion autocast;
  GTorchChange mode, off;
  GTorchTensor **tensors;
  GPtrArray *result;
  gboolean success;

  context = gtorch_function_context_new (impls, n_inputs);
  gtorch_change_to_grad (&mode, FALSE);
  cast = cast_inputs (self, impls, n_inputs, &inner);
  if (cast != NULL)
    gtorch_autocast_change_to_off (&off);
  gtorch_autocast_get (&autocast);
  result =
      inner != NULL
          ? NULL
          : GTORCH_FUNCTION_GET_CLASS (self)->forward (self, context,
                                                       cast != NULL ? (GTorchTensor **) cast->pdata
                                                                    : inputs,
                                                       n_inputs, &inner);
  if (cast != NULL)
    gtorch_change_end (&off);
  gtorch_change_end (&mode);
  if (!check_result (self, "forward", result, g_steal_pointer (&inner), error))
    return NULL;

  tensors = take_tensors (result, n);
  outputs = g_new0 (GTorchImpl *, MAX (*n, 1));
  success = check_outputs (self, context, tensors, *n, impls, n_inputs, outputs, wanted, error);
  if (success)
    mark_views (context, impls, n_inputs, outputs, *n);
  if (success && wanted && *n > 0)
    success =
        record (self, context, impls, n_inputs, outputs, *n, tensors, &autocast, sequence, error);
  gtorch_function_context_end_forward (context);
  free_tensors (tensors, *n);
  if (!success)
    gtorch_impl_clear (outputs, *n);
  return success ? g_steal_pointer (&outputs) : NULL;
}

/**
 * gtorch_function_set_cast_inputs:
 * @self: a function
 * @dtype: a floating-point dtype, or %GTORCH_DTYPE_NONE
 *
 * Sets [property@Function:cast-inputs]. With a dtype that is not a floating-point one the function fails.
 *
 * Since: 0.1
 */
void
gtorch_function_set_cast_inputs (GTorchFunction *self, GTorchDType dtype)
{
  g_return_if_fail (GTORCH_IS_FUNCTION (self));
  if (private_of (self)->cast_inputs == dtype)
    return;
  private_of (self)->cast_inputs = dtype;
  g_object_notify (G_OBJECT (self), "cast-inputs");
}

/**
 * gtorch_function_get_cast_inputs:
 * @self: a function
 *
 * Gets [property@Function:cast-inputs].
 *
 * Returns: the dtype
 *
 * Since: 0.1
 */
GTorchDType
gtorch_function_get_cast_inputs (GTorchFunction *self)
{
  g_return_val_if_fail (GTORCH_IS_FUNCTION (self), GTORCH_DTYPE_NONE);
  return private_of (self)->cast_inputs;
}

/**
 * gtorch_function_apply:
 * @self: a function
 * @inputs: (array length=n_inputs): its inputs
 * @n_inputs: the length of @inputs
 * @error: return location for an error
 *
 * Calls the function; with the grad mode on and an input that requires grad, backward is recorded.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the outputs, or %NULL with @error set: what
 *   forward set, or %GTORCH_ERROR_FAILED if it gave nothing
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_function_apply (GTorchFunction *self, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  g_autofree GTorchImpl **impls = NULL;
  g_autofree GTorchImpl **outputs = NULL;
  GTorchNamed named = { GTORCH_NAMED_FUNCTION };
  GPtrArray *result;
  gsize n, i;

  g_return_val_if_fail (GTORCH_IS_FUNCTION (self), NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  if (!gtorch_stack_check (G_OBJECT_TYPE_NAME (self), error))
    return NULL;
  impls = gtorch_tensors_unwrap (inputs, n_inputs);
  for (i = 0; i < n_inputs; i++)
    if (impls[i] == NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: input %zu is not a tensor"),
                     G_OBJECT_TYPE_NAME (self), i);
        return NULL;
      }
  if (gtorch_forward_is_on () && gtorch_tangents_exist (impls, n_inputs))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: a function of a program has no forward-mode derivative, and an input "
                      "has a tangent"),
                   G_OBJECT_TYPE_NAME (self));
      return NULL;
    }
  if (gtorch_is_observed ())
    {
      named.name = gtorch_type_own_name (G_OBJECT_TYPE_NAME (self));
      named.inputs = impls;
      named.n_inputs = n_inputs;
      gtorch_observe_named_begin (&named);
    }
  outputs = apply (self, inputs, impls, n_inputs, &n, &named.sequence, error);
  if (G_UNLIKELY (named.name != NULL))
    gtorch_observe_named_end (&named);
  if (outputs == NULL)
    return NULL;
  result = g_ptr_array_new_full (n, g_object_unref);
  for (i = 0; i < n; i++)
    g_ptr_array_add (result, gtorch_tensor_wrap (g_steal_pointer (&outputs[i])));
  return result;
}
