/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-graphed-module.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-field-private.h"
#include "nn/gtorch-graphed-module-private.h"
#include "base/gtorch-references-private.h"
#include "nn/gtorch-module-hooks.h"
#include "nn/gtorch-module-private.h"

/**
 * GTorchGraphedModule:
 *
 * A module, or a function, whose forward and backward passes are replays of graphs.
 *
 * It replaces the module that it was created from: it has the same parameters, buffers and children under
 * the same names, and gradients flow through it. Code that cannot be captured, such as decisions on
 * values, stays outside, and each part between becomes one of these. [func@make_graphed_callables]
 * captures several at once, which then share memory:
 *
 * ```c
 * GTorchGraphedModule *parts[2] = {
 *   gtorch_graphed_module_new (first, &x, 1, &error),
 *   gtorch_graphed_module_new (second, &h, 1, &error),
 * };
 *
 * if (!gtorch_make_graphed_callables (parts, 2, NULL, &error))
 *   return FALSE;
 * y = gtorch_module_forward (GTORCH_MODULE (parts[0]), data, &error);
 * ```
 *
 * Each call copies its inputs to where the graph reads them, unless they are the tensors from
 * [method@GraphedModule.get_inputs]. Inputs must have the dtype, shape, strides and device of the
 * samples, and require grad if those did. Parameters are read in place; an optimizer may change them in
 * place, but after one was replaced or moved the next call fails.
 *
 * The results are in the graphs' memory. The next call overwrites them; any later use of an older result
 * fails with %GTORCH_ERROR_RELEASED. Clone results that are needed longer. Likewise there is at most one
 * backward pass for each call, and it must come before the next call of the same module or of an earlier
 * one in the sequence. Gradients are accumulated in the parameters as usual. Second derivatives are not
 * supported.
 *
 * A replay would not run hooks, so modules with hooks are refused, and so are buffers that require grad.
 * Hooks of the object itself run.
 *
 * A module that was captured with the grad mode off has no backward pass. In another mode, training or
 * evaluation, than in the capture it runs without graphs, unless [property@GraphedModule:both-modes] is
 * set.
 *
 * Since: 0.1
 */

G_DEFINE_TYPE (GTorchGraphedModule, gtorch_graphed_module, GTORCH_TYPE_MODULE)

const gchar *
gtorch_graphed_module_name (GTorchGraphedModule *self)
{
  g_autofree gchar *name =
      g_strdup_printf ("GraphedModule(%s)",
                       self->module != NULL ? gtorch_module_type_name (self->module) : "function");

  return g_intern_string (name);
}

/* --- the module tree --- */

static void
look_at (GTorchModule *module, const gchar *path, gpointer user_data)
{
  GTorchGraphedBelow *below = user_data;
  gboolean training = gtorch_module_get_training (module);
  guint i, j;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (module, i == 1);

      for (j = 0; j < members->len; j++)
        {
          GTorchTensor *tensor = g_array_index (members, GTorchMember, j).tensor;

          g_ptr_array_add (below->members,
                           tensor != NULL ? gtorch_impl_ref (gtorch_tensor_unwrap (tensor)) : NULL);
        }
    }
  g_array_append_val (below->training, training);
  if (gtorch_module_has_hooks (module))
    g_set_object (&below->hooked, module);
}

static void
unref_member (gpointer impl)
{
  if (impl != NULL)
    gtorch_impl_unref (impl);
}

/* Checks that the members of self are still those of the module: both must have the same. */
void
gtorch_graphed_below_init (GTorchGraphedBelow *below, GTorchGraphedModule *self)
{
  *below = (GTorchGraphedBelow){ g_ptr_array_new_with_free_func (unref_member),
                                 g_array_new (FALSE, FALSE, sizeof (gboolean)), NULL };
  if (self->module == NULL)
    return;
  gtorch_module_visit (GTORCH_MODULE (self), TRUE, look_at, below);
  g_array_set_size (below->training, 0);
  g_clear_object (&below->hooked);
  gtorch_module_visit (self->module, TRUE, look_at, below);
}

void
gtorch_graphed_below_clear (GTorchGraphedBelow *below)
{
  g_ptr_array_unref (below->members);
  g_array_unref (below->training);
  g_clear_object (&below->hooked);
}

gboolean
gtorch_graphed_check_hooks (GTorchGraphedModule *self, GTorchGraphedBelow *below, GError **error)
{
  if (below->hooked == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: %s has hooks, which a replay would not run: remove them"),
               gtorch_graphed_module_name (self), gtorch_module_type_name (below->hooked));
  return FALSE;
}

/* Finds the captured mode again, after a change in some module. */
static gboolean
look_again (GTorchGraphedModule *self, gint changes, GError **error)
{
  gboolean success;
  GTorchGraphedBelow below;
  guint i;

  gtorch_graphed_below_init (&below, self);
  success = gtorch_graphed_check_hooks (self, &below, error);
  if (success
      && (below.members->len != self->members->len
          || (below.members->len > 0
              && memcmp (below.members->pdata, self->members->pdata,
                         below.members->len * sizeof (gpointer))
                     != 0)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: a parameter or buffer was replaced since the capture, and the graph "
                      "uses the former one: capture again"),
                   gtorch_graphed_module_name (self));
      success = FALSE;
    }
  if (success)
    {
      self->current = NULL;
      for (i = 0; i < self->n_modes && self->current == NULL; i++)
        if (below.training->len == self->modes[i].training->len
            && (below.training->len == 0
                || memcmp (below.training->data, self->modes[i].training->data,
                           below.training->len * sizeof (gboolean))
                       == 0))
          self->current = &self->modes[i];
      self->seen_changes = changes;
    }
  gtorch_graphed_below_clear (&below);
  return success;
}

/* Fails if a member has other memory now. */
static gboolean
check_memory (GTorchGraphedModule *self, GError **error)
{
  guint i;

  for (i = 0; i < self->members->len; i++)
    {
      GTorchImpl *member = self->members->pdata[i];

      if (G_LIKELY (member == NULL || member->storage == self->storages->pdata[i]))
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: a parameter or buffer of shape %s was moved or released since the "
                      "capture, and the graph uses its former memory: capture again"),
                   gtorch_graphed_module_name (self), gtorch_impl_shape_str (member));
      return FALSE;
    }
  return TRUE;
}

static gboolean
find_mode (GTorchGraphedModule *self, GError **error)
{
  gint changes = g_atomic_int_get (&gtorch_module_changes);

  if (self->n_modes == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: it was not captured: call make_graphed_callables first"),
                   gtorch_graphed_module_name (self));
      return FALSE;
    }
  return (G_LIKELY (changes == self->seen_changes) || look_again (self, changes, error))
         && check_memory (self, error);
}

/* --- calls --- */

static GPtrArray *
one_output (GTorchTensor *output)
{
  GPtrArray *array = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (array, output);
  return array;
}

GPtrArray *
gtorch_graphed_call_module (gpointer data, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GTorchGraphedModule *self = data;
  GTorchTensor *output;

  if (n_inputs == 1)
    output = gtorch_module_forward (self->module, inputs[0], error);
  else
    output = gtorch_module_forward_many (self->module, inputs, n_inputs, error);
  return output != NULL ? one_output (output) : NULL;
}

/* Arrays from other languages may have no free function; this library owns their elements nevertheless. */
GPtrArray *
gtorch_graphed_call_func (gpointer data, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GTorchGraphedModule *self = data;
  GPtrArray *given = self->func (inputs, n_inputs, self->user_data, error);
  GPtrArray *array;
  gpointer *elements;
  gsize n, i;

  if (given == NULL)
    return NULL;
  elements = g_ptr_array_steal (given, &n);
  g_ptr_array_unref (given);
  array = g_ptr_array_new_full (n, g_object_unref);
  for (i = 0; i < n; i++)
    g_ptr_array_add (array, elements[i]);
  g_free (elements);
  return array;
}

/**
 * gtorch_graphed_module_run:
 * @self: a captured module or function
 * @inputs: (array length=n_inputs): the inputs
 * @n_inputs: the length of @inputs
 * @error: return location for an error
 *
 * Computes all outputs. [method@Module.forward] can be used if there is only one.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the outputs, which the next call overwrites;
 *   %NULL with %GTORCH_ERROR_SHAPE, %GTORCH_ERROR_DTYPE, %GTORCH_ERROR_DEVICE_MISMATCH,
 *   %GTORCH_ERROR_AUTOGRAD or %GTORCH_ERROR_INVALID if an input does not match its sample, with
 *   %GTORCH_ERROR_INVALID if a parameter was replaced or nothing was captured, or with
 *   %GTORCH_ERROR_CAPTURE during the capture of another graph
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_graphed_module_run (GTorchGraphedModule *self, GTorchTensor **inputs, gsize n_inputs,
                           GError **error)
{
  g_autofree GTorchImpl **impls = NULL;
  g_autofree GTorchImpl **outputs = NULL;
  GTorchGraphed *graphed;
  GPtrArray *array;
  gsize i;

  g_return_val_if_fail (GTORCH_IS_GRAPHED_MODULE (self), NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  if (!find_mode (self, error))
    return NULL;
  if (self->current == NULL)
    return gtorch_graphed_call_module (self, inputs, n_inputs, error);
  impls = gtorch_tensors_unwrap (inputs, n_inputs);
  for (i = 0; i < n_inputs; i++)
    if (impls[i] == NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: input %zu is not a tensor"),
                     gtorch_graphed_module_name (self), i);
        return NULL;
      }
  graphed = self->current->graphed;
  outputs = gtorch_graphed_call (graphed, impls, n_inputs, error);
  if (outputs == NULL)
    return NULL;
  array = g_ptr_array_new_full (graphed->n_outputs, g_object_unref);
  for (i = 0; i < graphed->n_outputs; i++)
    g_ptr_array_add (array, gtorch_tensor_wrap (outputs[i]));
  return array;
}

static GTorchTensor *
gtorch_graphed_module_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                                    GError **error)
{
  g_autoptr (GPtrArray) outputs =
      gtorch_graphed_module_run (GTORCH_GRAPHED_MODULE (module), inputs, n_inputs, error);

  if (outputs == NULL)
    return NULL;
  if (outputs->len != 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: it has %u outputs, all of which run () returns"),
                   gtorch_graphed_module_name (GTORCH_GRAPHED_MODULE (module)), outputs->len);
      return NULL;
    }
  return g_object_ref (outputs->pdata[0]);
}

static GTorchTensor *
gtorch_graphed_module_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return gtorch_graphed_module_forward_many (module, &input, 1, error);
}

static gchar *
gtorch_graphed_module_extra_repr (GTorchModule *module)
{
  GTorchGraphedModule *self = GTORCH_GRAPHED_MODULE (module);

  return g_strdup (self->module != NULL ? gtorch_module_type_name (self->module) : "function");
}

/* --- the object --- */

void
gtorch_graphed_module_drop_modes (GTorchGraphedModule *self)
{
  g_autoptr (GPtrArray) members = NULL;
  guint i;

  for (i = 0; i < self->n_modes; i++)
    {
      gtorch_graphed_unref (self->modes[i].graphed);
      g_array_unref (self->modes[i].training);
    }
  self->n_modes = 0;
  self->current = NULL;
  gtorch_references_lock ();
  members = g_steal_pointer (&self->members);
  gtorch_references_unlock ();
  g_clear_pointer (&self->storages, g_ptr_array_unref);
}

/* What was captured may have this module inside, or as its data. */
static void
gtorch_graphed_module_dispose (GObject *object)
{
  GTorchGraphedModule *self = GTORCH_GRAPHED_MODULE (object);
  GDestroyNotify destroy = g_steal_pointer (&self->destroy);

  gtorch_graphed_module_drop_modes (self);
  g_clear_object (&self->module);
  self->func = NULL;
  if (destroy != NULL)
    destroy (g_steal_pointer (&self->user_data));
  G_OBJECT_CLASS (gtorch_graphed_module_parent_class)->dispose (object);
}

static void
gtorch_graphed_module_finalize (GObject *object)
{
  GTorchGraphedModule *self = GTORCH_GRAPHED_MODULE (object);

  g_ptr_array_unref (self->samples);
  G_OBJECT_CLASS (gtorch_graphed_module_parent_class)->finalize (object);
}

typedef GTorchGraphedModule Self;

static const GTorchField fields[] = {
  /**
   * GTorchGraphedModule:wrapped: (getter get_wrapped)
   *
   * The module that it was created from; %NULL for a function.
   *
   * Since: 0.1
   */
  { "wrapped", GTORCH_PROPERTY_OBJECT (GTorchModule, gtorch_module_get_type,
                                       gtorch_graphed_module_get_wrapped, NULL) },
  /**
   * GTorchGraphedModule:warmup-iterations: (getter get_warmup_iterations) (setter set_warmup_iterations)
   *
   * The number of warm-up runs before the capture, forward and backward, on a side stream. Buffers and
   * random numbers are restored afterwards. A network whose gradients are averaged over processes needs
   * 11.
   *
   * Since: 0.1
   */
  { "warmup-iterations",
    GTORCH_PROPERTY_UINT (gtorch_graphed_module_get_warmup_iterations,
                          gtorch_graphed_module_set_warmup_iterations),
    .value = 3 },
  /**
   * GTorchGraphedModule:allow-unused: (getter get_allow_unused) (setter set_allow_unused)
   *
   * Whether inputs and parameters that require grad may have no effect on the outputs. They get no
   * gradient then.
   *
   * Since: 0.1
   */
  { "allow-unused", GTORCH_PROPERTY_BOOL (gtorch_graphed_module_get_allow_unused,
                                          gtorch_graphed_module_set_allow_unused) },
  /**
   * GTorchGraphedModule:both-modes: (getter get_both_modes) (setter set_both_modes)
   *
   * Whether a module is captured both for training and for evaluation, with [property@Module:training] on
   * and off. The two captures do not share memory: one may be used between a forward and a backward pass
   * of the other.
   *
   * Since: 0.1
   */
  { "both-modes", GTORCH_PROPERTY_BOOL (gtorch_graphed_module_get_both_modes,
                                        gtorch_graphed_module_set_both_modes) },
  /**
   * GTorchGraphedModule:is-captured: (getter is_captured)
   *
   * Whether there is a capture to replay.
   *
   * Since: 0.1
   */
  { "is-captured", GTORCH_PROPERTY_BOOL (gtorch_graphed_module_is_captured, NULL) },
};

/* What it owns beside its members. */
static void
gtorch_graphed_module_add_references (gpointer module, GTorchReferences *references)
{
  GTorchGraphedModule *self = module;
  guint i;

  gtorch_references_add_object (references, self->module);
  for (i = 0; self->members != NULL && i < self->members->len; i++)
    gtorch_references_add_impl (references, self->members->pdata[i]);
}

static GTorchReferencesType references_type = { .look = gtorch_graphed_module_add_references };

static void
gtorch_graphed_module_class_init (GTorchGraphedModuleClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GTorchModuleClass *module_class = GTORCH_MODULE_CLASS (klass);

  object_class->dispose = gtorch_graphed_module_dispose;
  object_class->finalize = gtorch_graphed_module_finalize;
  module_class->forward = gtorch_graphed_module_forward;
  module_class->forward_many = gtorch_graphed_module_forward_many;
  module_class->extra_repr = gtorch_graphed_module_extra_repr;
  GTORCH_FIELDS (klass, fields);
  references_type.type = GTORCH_TYPE_GRAPHED_MODULE;
  gtorch_references_add_type (&references_type);
}

static void
follow_mode (GTorchGraphedModule *self)
{
  if (self->module != NULL)
    gtorch_module_set_training (self->module, gtorch_module_get_training (GTORCH_MODULE (self)));
}

static void
gtorch_graphed_module_init (GTorchGraphedModule *self)
{
  self->samples = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  self->n_warmups = 3;
  g_signal_connect (self, "notify::training", G_CALLBACK (follow_mode), NULL);
}

static gboolean
take_samples (GTorchGraphedModule *self, GTorchTensor **samples, gsize n_samples, GError **error)
{
  gsize i;

  for (i = 0; i < n_samples; i++)
    {
      GTorchImpl *impl = GTORCH_IS_TENSOR (samples[i]) ? gtorch_tensor_unwrap (samples[i]) : NULL;

      if (impl == NULL || impl->storage == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: sample %zu is not a tensor or was released"),
                       gtorch_graphed_module_name (self), i);
          return FALSE;
        }
      g_ptr_array_add (self->samples, gtorch_impl_ref (impl));
    }
  return TRUE;
}

/* Registers the members of the module under the same names. */
static gboolean
take_members (GTorchGraphedModule *self, GError **error)
{
  g_autoptr (GArray) parameters = gtorch_module_dup_members (self->module, FALSE);
  g_autoptr (GArray) buffers = gtorch_module_dup_members (self->module, TRUE);
  g_auto (GStrv) names = NULL;
  g_autoptr (GPtrArray) children = gtorch_module_dup_children (self->module, &names);
  GTorchModule *own = GTORCH_MODULE (self);
  guint i;

  for (i = 0; i < parameters->len; i++)
    {
      GTorchMember *member = &g_array_index (parameters, GTorchMember, i);

      if (!gtorch_module_register_parameter (own, member->name, (GTorchParameter *) member->tensor,
                                             error))
        return FALSE;
    }
  for (i = 0; i < buffers->len; i++)
    {
      GTorchMember *member = &g_array_index (buffers, GTorchMember, i);

      if (!gtorch_module_register_buffer (own, member->name, member->tensor, member->persistent,
                                          error))
        return FALSE;
      if (member->tensor != NULL
          && gtorch_impl_requires_grad (gtorch_tensor_unwrap (member->tensor)))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("%s: buffer %s requires grad: make it a parameter"),
                       gtorch_graphed_module_name (self), member->name);
          return FALSE;
        }
    }
  for (i = 0; i < children->len; i++)
    if (!gtorch_module_register_module (own, names[i], children->pdata[i], error))
      return FALSE;
  gtorch_module_get_private (own)->training = gtorch_module_get_training (self->module);
  return TRUE;
}

/**
 * gtorch_graphed_module_new:
 * @module: a module
 * @samples: (array length=n_samples): tensors with the geometry of the later inputs
 * @n_samples: the length of @samples
 * @error: return location for an error
 *
 * Creates a module that wraps @module, to be captured by [func@make_graphed_callables]. The values of
 * @samples only matter for the warm-up; whether they require grad matters for the capture.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_NOT_SUPPORTED if there are hooks,
 *   or buffers that require grad, or with %GTORCH_ERROR_INVALID if a sample was released
 *
 * Since: 0.1
 */
GTorchGraphedModule *
gtorch_graphed_module_new (GTorchModule *module, GTorchTensor **samples, gsize n_samples,
                           GError **error)
{
  g_autoptr (GTorchGraphedModule) self = NULL;
  gboolean success;
  GTorchGraphedBelow below;

  g_return_val_if_fail (GTORCH_IS_MODULE (module), NULL);
  g_return_val_if_fail (samples != NULL || n_samples == 0, NULL);
  if (!gtorch_module_is_usable (module, error))
    return NULL;
  self = g_object_new (GTORCH_TYPE_GRAPHED_MODULE, NULL);
  self->module = g_object_ref (module);
  gtorch_graphed_below_init (&below, self);
  success = gtorch_graphed_check_hooks (self, &below, error)
            && take_samples (self, samples, n_samples, error) && take_members (self, error);
  gtorch_graphed_below_clear (&below);
  return success ? g_steal_pointer (&self) : NULL;
}

/**
 * gtorch_graphed_module_new_for_func:
 * @func: (scope notified) (closure user_data) (destroy destroy): computes the outputs
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 * @samples: (array length=n_samples): tensors with the geometry of the later inputs
 * @n_samples: the length of @samples
 * @error: return location for an error
 *
 * Creates a module that wraps a function, to be captured by [func@make_graphed_callables]. After the
 * capture the function is not called again. Tensors that it captures and that require grad get gradients,
 * too.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if a sample was released
 *
 * Since: 0.1
 */
GTorchGraphedModule *
gtorch_graphed_module_new_for_func (GTorchGraphedFunc func, gpointer user_data,
                                    GDestroyNotify destroy, GTorchTensor **samples, gsize n_samples,
                                    GError **error)
{
  g_autoptr (GTorchGraphedModule) self = NULL;

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (samples != NULL || n_samples == 0, NULL);
  self = g_object_new (GTORCH_TYPE_GRAPHED_MODULE, NULL);
  self->func = func;
  self->user_data = user_data;
  self->destroy = destroy;
  return take_samples (self, samples, n_samples, error) ? g_steal_pointer (&self) : NULL;
}

/**
 * gtorch_graphed_module_get_inputs:
 * @self: a captured module or function
 * @error: return location for an error
 *
 * Gets the tensors that the graph of the present mode reads. Code that writes its data into them, and
 * passes them to the call, saves a copy.
 *
 * Returns: (transfer container) (element-type GTorchTensor): one for each input, without history; %NULL
 *   with %GTORCH_ERROR_INVALID if nothing was captured in this mode
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_graphed_module_get_inputs (GTorchGraphedModule *self, GError **error)
{
  GPtrArray *array;
  guint i;

  g_return_val_if_fail (GTORCH_IS_GRAPHED_MODULE (self), NULL);
  if (!find_mode (self, error))
    return NULL;
  if (self->current == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: it was not captured in the present mode"),
                   gtorch_graphed_module_name (self));
      return NULL;
    }
  array = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = 0; i < self->current->graphed->n_inputs; i++)
    g_ptr_array_add (array,
                     gtorch_tensor_wrap (gtorch_impl_alias (self->current->graphed->inputs[i])));
  return array;
}

/**
 * gtorch_graphed_module_get_wrapped: (get-property wrapped)
 * @self: a captured module or function
 *
 * Gets the module that @self was created from.
 *
 * Returns: (transfer none) (nullable): the module; %NULL for a function
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_graphed_module_get_wrapped (GTorchGraphedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAPHED_MODULE (self), NULL);
  return self->module;
}

/**
 * gtorch_graphed_module_get_warmup_iterations: (get-property warmup-iterations)
 * @self: a captured module or function
 *
 * Gets the number of warm-up runs before the capture.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_graphed_module_get_warmup_iterations (GTorchGraphedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAPHED_MODULE (self), 0);
  return self->n_warmups;
}

/**
 * gtorch_graphed_module_set_warmup_iterations: (set-property warmup-iterations)
 * @self: a captured module or function
 * @n: the number of runs
 *
 * Sets the number of warm-up runs before the next capture.
 *
 * Since: 0.1
 */
void
gtorch_graphed_module_set_warmup_iterations (GTorchGraphedModule *self, guint n)
{
  g_return_if_fail (GTORCH_IS_GRAPHED_MODULE (self));
  if (self->n_warmups == n)
    return;
  self->n_warmups = n;
  g_object_notify (G_OBJECT (self), "warmup-iterations");
}

/**
 * gtorch_graphed_module_get_allow_unused: (get-property allow-unused)
 * @self: a captured module or function
 *
 * Tells whether inputs and parameters that require grad may have no effect on the outputs.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_graphed_module_get_allow_unused (GTorchGraphedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAPHED_MODULE (self), FALSE);
  return self->allow_unused;
}

/**
 * gtorch_graphed_module_set_allow_unused: (set-property allow-unused)
 * @self: a captured module or function
 * @allow_unused: %TRUE to allow it
 *
 * Sets whether inputs and parameters that require grad may have no effect on the outputs, for the next
 * capture.
 *
 * Since: 0.1
 */
void
gtorch_graphed_module_set_allow_unused (GTorchGraphedModule *self, gboolean allow_unused)
{
  g_return_if_fail (GTORCH_IS_GRAPHED_MODULE (self));
  if (self->allow_unused == (allow_unused != FALSE))
    return;
  self->allow_unused = allow_unused != FALSE;
  g_object_notify (G_OBJECT (self), "allow-unused");
}

/**
 * gtorch_graphed_module_get_both_modes: (get-property both-modes)
 * @self: a captured module or function
 *
 * Tells whether a module is captured both for training and for evaluation.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_graphed_module_get_both_modes (GTorchGraphedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAPHED_MODULE (self), FALSE);
  return self->both_modes;
}

/**
 * gtorch_graphed_module_set_both_modes: (set-property both-modes)
 * @self: a captured module or function
 * @both_modes: %TRUE to capture both
 *
 * Sets whether the next capture of a module is both for training and for evaluation. Functions have no
 * mode.
 *
 * Since: 0.1
 */
void
gtorch_graphed_module_set_both_modes (GTorchGraphedModule *self, gboolean both_modes)
{
  g_return_if_fail (GTORCH_IS_GRAPHED_MODULE (self));
  if (self->both_modes == (both_modes != FALSE))
    return;
  self->both_modes = both_modes != FALSE;
  g_object_notify (G_OBJECT (self), "both-modes");
}

/**
 * gtorch_graphed_module_is_captured: (get-property is-captured)
 * @self: a captured module or function
 *
 * Tells whether there is a capture to replay.
 *
 * Returns: %TRUE after [func@make_graphed_callables]
 *
 * Since: 0.1
 */
gboolean
gtorch_graphed_module_is_captured (GTorchGraphedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_GRAPHED_MODULE (self), FALSE);
  return self->n_modes > 0;
}
