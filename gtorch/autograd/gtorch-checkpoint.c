/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checkpoints: what operations save is computed again in the backward pass instead of being kept.
 *
 * While the function runs for the first time, hooks for saved tensors keep the number of each saved tensor
 * in its place, in a frame. The first of them that a backward pass needs makes the function run again, with
 * the inputs, the random numbers, mixed precision, the streams and the tensors of modules of the first time.
 * Meanwhile other hooks store what is saved now in a table, by its number: the function must save the same
 * tensors in the same order. When the last that is needed is there, they fail the operation that saves it, so
 * that the function ends early (early_stop). The table belongs to one pass, takes each value out as it is
 * needed, and is dropped at the end of the pass; another pass over the same graph computes anew.
 *
 * The inputs are saved by the hooks that were there before: inside of an outer checkpoint these give numbers,
 * too, so that the inner one keeps nothing and the outer one computes the inputs of the inner one again. */

#include "config.h"

#include "autograd/gtorch-checkpoint.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-function-private.h"
#include "autograd/gtorch-surroundings-private.h"
#include "base/gtorch-callback-private.h"
#include "base/gtorch-stack-private.h"
#include "device/gtorch-generator-private.h"
#include "dispatch/gtorch-autocast-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "tensor/gtorch-tensor-private.h"

typedef struct
{
  const gchar *op; /* what has saved it */
  GTorchMeta meta; /* its shape is owned */
  gboolean is_alive;
} Slot;

/* What a pass has computed again. */
typedef struct
{
  const GTorchPass *pass;
  GTorchImpl **values; /* by number; NULL where it was taken, or is not needed */
  const gchar **ops;   /* what has saved them */
  guint *versions;
  guint n;       /* how many tensors were saved the first time */
  guint n_found; /* how many were saved now */
  gboolean is_stopped;
  gboolean is_longer; /* the function saved more, and had not ended the first time */
} Table;

typedef struct
{
  GTorchSavedHooks hooks;
  GTorchRecomputeFunc recompute;
  gpointer user_data;
  GDestroyNotify destroy;
  GTorchFunctionContext *context; /* saves the inputs */
  GTorchNode *inputs;             /* their places in the graph */
  GTorchRandomStates *random;     /* NULL: not to be restored */
  guint n_captured; /* random calls in captures before; with the end, those of the function */
  guint n_captured_at_end;
  GTorchAutocastRegion autocast;
  GTorchThreadStreams streams;
  GTorchSurroundings surroundings;
  gboolean checks, early_stop;
  GMutex lock;   /* protects the slots and the tables */
  GArray *slots; /* of Slot */
  GPtrArray *tables;
} Frame;

/* --- the inputs --- */

typedef struct
{
  GTorchNode node;
  GTorchEdge edges[];
} InputsNode;

static void
inputs_nothing (GTorchNode *node)
{
}

static const GTorchNodeClass inputs_class = { NULL, inputs_nothing, inputs_nothing };

static gboolean
save_inputs (Frame *self, GTorchTensor **inputs, gsize n, GError **error)
{
  g_autofree GTorchImpl **impls = gtorch_tensors_unwrap (inputs, n);
  InputsNode *node;
  gsize i;

  for (i = 0; i < n; i++)
    if (impls[i] == NULL || impls[i]->storage == NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("checkpoint: input %zu is not a tensor, has no elements yet or was "
                        "released"),
                     i);
        return FALSE;
      }
  node = g_malloc0 (sizeof (InputsNode) + n * sizeof (GTorchEdge));
  gtorch_node_init (&node->node, &inputs_class, "checkpoint", n, 0);
  node->node.edges = node->edges;
  self->inputs = &node->node;
  for (i = 0; i < n; i++)
    gtorch_node_set_edge (self->inputs, i, impls[i]);
  self->context = gtorch_function_context_new (impls, n);
  if (!gtorch_function_context_save_for_backward (self->context, inputs, n, error)
      || !gtorch_function_context_pack (self->context, self->inputs, impls, n, NULL, 0, error))
    return FALSE;
  gtorch_function_context_end_forward (self->context);
  return TRUE;
}

/* --- tables --- */

static Table *
table_new (const GTorchPass *pass, guint n)
{
  Table *self = g_new0 (Table, 1);

  self->pass = pass;
  self->n = n;
  self->values = g_new0 (GTorchImpl *, MAX (n, 1));
  self->ops = g_new0 (const gchar *, MAX (n, 1));
  self->versions = g_new0 (guint, MAX (n, 1));
  return self;
}

static void
table_free (gpointer data)
{
  Table *self = data;

  gtorch_impl_clear (self->values, self->n);
  g_free (self->values);
  g_free (self->ops);
  g_free (self->versions);
  g_free (self);
}

/* With the lock held: the position of the table of a pass, or how many there are. */
static guint
find_table (Frame *self, const GTorchPass *pass)
{
  guint i;

  for (i = 0; i < self->tables->len; i++)
    if (((Table *) self->tables->pdata[i])->pass == pass)
      break;
  return i;
}

typedef struct
{
  Frame *frame;
  const GTorchPass *pass;
} End;

static void
end_pass (gpointer data)
{
  End *end = data;
  Table *table;

  g_mutex_lock (&end->frame->lock);
  table = g_ptr_array_steal_index (end->frame->tables, find_table (end->frame, end->pass));
  g_mutex_unlock (&end->frame->lock);
  table_free (table);
  gtorch_saved_hooks_unref (end->frame);
  g_free (end);
}

/* --- the second time --- */

typedef struct
{
  GTorchSavedHooks hooks;
  Frame *frame;
  Table *table;
} Again;

static void
error_stop (GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
               _ ("checkpoint: all that the backward pass needs was computed again; this error "
                  "ends the function early and goes no further (early_stop)"));
}

static gboolean
is_in_use (Frame *self)
{
  const GTorchChange *at;
  guint i;

  if (gtorch_thread.saved_hooks == &self->hooks)
    return TRUE;
  for (at = gtorch_thread.changes; at != NULL; at = at->older)
    for (i = 0; i < at->n_formers; i++)
      if (at->formers[i].value == self)
        return TRUE;
  return FALSE;
}

static gboolean
again_pack (GTorchSavedHooks *hooks, GTorchImpl *value, const gchar *op, gpointer *packed,
            GError **error)
{
  Again *self = (Again *) hooks;
  Table *table = self->table;
  Frame *frame = self->frame;
  const guint i = table->n_found;

  if (table->is_stopped)
    {
      error_stop (error);
      return FALSE;
    }
  table->n_found++;
  if (i >= table->n)
    {
      table->is_longer = is_in_use (frame);
      if (table->is_longer)
        return TRUE;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("checkpoint: the function saves more than the %u tensors of the first time "
                      "when it is called again: it must do the same both times"),
                   table->n);
      return FALSE;
    }
  g_mutex_lock (&frame->lock);
  if (g_array_index (frame->slots, Slot, i).is_alive)
    {
      table->values[i] = gtorch_impl_ref (value);
      table->ops[i] = op;
      table->versions[i] = g_atomic_int_get (&value->storage->version);
    }
  g_mutex_unlock (&frame->lock);
  table->is_stopped = frame->early_stop && table->n_found == table->n;
  if (table->is_stopped)
    error_stop (error);
  return !table->is_stopped;
}

static void
again_drop (GTorchSavedHooks *hooks, gpointer packed)
{
}

static void
again_finalize (GTorchSavedHooks *hooks)
{
  gtorch_saved_hooks_unref (((Again *) hooks)->frame);
}

static const GTorchSavedHooksClass again_class = { again_pack, NULL, again_drop, again_finalize };

static void
describe (GString *text, const gchar *op, guint dtype, const gint64 *shape, guint n_dims,
          GTorchDevice *device)
{
  g_string_append_printf (text, "%s %s %s of %s", gtorch_dtype_get_name (dtype),
                          gtorch_shape_str (shape, n_dims), gtorch_device_name (device), op);
}

/* Compares what was saved both times. */
static gboolean
check_table (Frame *self, Table *table, GError **error)
{
  g_autoptr (GString) text = NULL;
  guint i;

  if (table->is_longer)
    return TRUE;
  if (table->n_found != table->n)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("checkpoint: a different number of tensors was saved: %u the first time, %u "
                      "when the function was called again; it must do the same both times"),
                   table->n, table->n_found);
      return FALSE;
    }
  g_mutex_lock (&self->lock);
  for (i = 0; i < table->n && self->checks; i++)
    {
      const Slot *slot = &g_array_index (self->slots, Slot, i);
      const GTorchImpl *value = table->values[i];

      if (value == NULL
          || (g_str_equal (slot->op, table->ops[i]) && value->dtype == slot->meta.dtype
              && gtorch_impl_device (value) == slot->meta.device
              && gtorch_same_shape (value->shape, value->n_dims, slot->meta.shape,
                                    slot->meta.n_dims)))
        continue;
      if (text == NULL)
        text = g_string_new (NULL);
      g_string_append_printf (text, "%stensor %u: ", text->len > 0 ? "; " : "", i);
      describe (text, slot->op, slot->meta.dtype, slot->meta.shape, slot->meta.n_dims,
                slot->meta.device);
      g_string_append (text, ", then ");
      describe (text, table->ops[i], value->dtype, value->shape, value->n_dims,
                gtorch_impl_device (value));
    }
  g_mutex_unlock (&self->lock);
  if (text == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               _ ("checkpoint: the function saved other tensors when it was called again (%s); it "
                  "must do the same both times"),
               text->str);
  return FALSE;
}

/* Calls the function; what it saves goes to the table. */
static gboolean
fill_table (Frame *self, Table *table, GPtrArray *inputs, GError **error)
{
  GTorchRandomStates *random = NULL;
  GTorchChange change;
  gboolean success;
  Again *again = g_new0 (Again, 1);

  gtorch_saved_hooks_init (&again->hooks, &again_class);
  gtorch_saved_hooks_ref (&self->hooks);
  again->frame = self;
  again->table = table;
  gtorch_change_to_saved_hooks (&change, &again->hooks);
  if (self->random != NULL)
    random = gtorch_random_states_exchange (self->random);
  success = self->recompute ((GTorchTensor **) inputs->pdata, inputs->len, self->user_data, error);
  if (random != NULL)
    gtorch_random_states_restore (random);
  gtorch_change_end (&change);
  again->table = NULL;
  gtorch_saved_hooks_unref (again);
  return success;
}

static gboolean
call_again (Frame *self, Table *table, GError **error)
{
  g_autoptr (GPtrArray) inputs = NULL;
  GTorchFormerSurroundings former;
  GTorchChange mode, region, streams;
  GError *local = NULL;
  gboolean success;

  gtorch_change_to_grad (&mode, TRUE);
  inputs = gtorch_function_context_get_saved_tensors (self->context, error);
  if (inputs == NULL)
    {
      gtorch_change_end (&mode);
      return FALSE;
    }
  gtorch_autocast_change_to (&region, &self->autocast);
  gtorch_thread.n_regions++;
  gtorch_thread_streams_change_to (&self->streams, &streams);
  success = gtorch_surroundings_enter (&self->surroundings, &former, &local);
  if (success)
    {
      success = fill_table (self, table, inputs, &local);
      gtorch_surroundings_leave (&self->surroundings, &former);
    }
  gtorch_change_end (&streams);
  gtorch_change_end (&region);
  gtorch_autocast_region_ended ();
  gtorch_change_end (&mode);
  if (table->is_stopped)
    g_clear_error (&local);
  else if (!gtorch_callback_ended ("checkpoint", success, local, error))
    return FALSE;
  return check_table (self, table, error);
}

static Table *
compute_again (Frame *self, GTorchPass *pass, GError **error)
{
  Table *table;

  if (!gtorch_stack_check ("checkpoint", error))
    return NULL;
  if (self->random != NULL && self->n_captured_at_end != self->n_captured)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("checkpoint: the function draws random numbers in a capture, and replays "
                      "draw new ones for each call: those of the first time cannot be drawn again "
                      "(preserve_rng_state)"));
      return NULL;
    }
  g_mutex_lock (&self->lock);
  table = table_new (pass, self->slots->len);
  g_mutex_unlock (&self->lock);
  if (!call_again (self, table, error))
    {
      table_free (table);
      return NULL;
    }
  return table;
}

/* --- the first time --- */

static gboolean
frame_pack (GTorchSavedHooks *hooks, GTorchImpl *value, const gchar *op, gpointer *packed,
            GError **error)
{
  Frame *self = (Frame *) hooks;
  Slot slot = { .op = op, .is_alive = TRUE };

  gtorch_meta_init (&slot.meta, value, g_new (gint64, MAX (value->n_dims, 1)));
  g_mutex_lock (&self->lock);
  g_array_append_val (self->slots, slot);
  *packed = GUINT_TO_POINTER (self->slots->len);
  self->n_captured_at_end = gtorch_thread.n_captured;
  g_mutex_unlock (&self->lock);
  return TRUE;
}

/* Takes a value out of the table, which is not shared with other passes. */
static GTorchImpl *
take (Frame *self, Table *table, guint i, GError **error)
{
  GTorchImpl *value = i < table->n ? g_steal_pointer (&table->values[i]) : NULL;

  if (value == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                 _ ("checkpoint: tensor %u was not computed again, or was needed twice: ask for "
                    "saved tensors once in a backward"),
                 i);
  else if (table->versions[i] != (guint) g_atomic_int_get (&value->storage->version))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("checkpoint: tensor %u, of dtype %s and shape %s, was changed in place after "
                      "it was saved: clone it before changing it"),
                   i, gtorch_dtype_get_name (value->dtype), gtorch_impl_shape_str (value));
      g_clear_pointer (&value, gtorch_impl_unref);
    }
  return value;
}

static GTorchImpl *
frame_unpack (GTorchSavedHooks *hooks, gpointer packed, GError **error)
{
  Frame *self = (Frame *) hooks;
  const guint i = GPOINTER_TO_UINT (packed) - 1;
  GTorchPass *pass = gtorch_engine_get_pass ();
  GTorchImpl *value;
  Table *table = NULL;
  guint at;
  End *end;

  if (pass != NULL)
    {
      g_mutex_lock (&self->lock);
      at = find_table (self, pass);
      table = at < self->tables->len ? self->tables->pdata[at] : NULL;
      g_mutex_unlock (&self->lock);
    }
  if (table != NULL)
    return take (self, table, i, error);
  table = compute_again (self, pass, error);
  if (table == NULL)
    return NULL;
  value = take (self, table, i, error);
  if (pass == NULL)
    {
      table_free (table);
      return value;
    }
  end = g_new (End, 1);
  *end = (End){ self, pass };
  gtorch_saved_hooks_ref (&self->hooks);
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->tables, table);
  g_mutex_unlock (&self->lock);
  gtorch_pass_at_end (pass, end_pass, end);
  return value;
}

static void
frame_drop (GTorchSavedHooks *hooks, gpointer packed)
{
  Frame *self = (Frame *) hooks;
  const guint at = GPOINTER_TO_UINT (packed) - 1;

  g_mutex_lock (&self->lock);
  g_array_index (self->slots, Slot, at).is_alive = FALSE;
  g_mutex_unlock (&self->lock);
}

static void
frame_finalize (GTorchSavedHooks *hooks)
{
  Frame *self = (Frame *) hooks;
  guint i;

  if (self->destroy != NULL)
    self->destroy (self->user_data);
  if (self->context != NULL)
    self->context->node = NULL;
  g_clear_object (&self->context);
  g_clear_pointer (&self->inputs, gtorch_node_unref);
  g_clear_pointer (&self->random, gtorch_random_states_free);
  gtorch_thread_streams_clear (&self->streams);
  gtorch_surroundings_clear (&self->surroundings);
  for (i = 0; i < self->slots->len; i++)
    g_free ((gpointer) g_array_index (self->slots, Slot, i).meta.shape);
  g_array_unref (self->slots);
  g_ptr_array_unref (self->tables);
  g_mutex_clear (&self->lock);
}

static const GTorchSavedHooksClass frame_class = { frame_pack, frame_unpack, frame_drop,
                                                   frame_finalize };

/**
 * gtorch_checkpoint_begin:
 * @recompute: (scope notified) (closure user_data) (destroy destroy): computes the same again
 * @user_data: data for @recompute
 * @destroy: (nullable): frees @user_data
 * @inputs: (array length=n_inputs): what @recompute gets
 * @n_inputs: the length of @inputs
 * @preserve_rng_state: draw the same random numbers again
 * @determinism_check: compare operations, dtypes, shapes and devices of what is saved both times
 * @early_stop: end @recompute as soon as it has computed all that is needed
 * @error: return location for an error
 *
 * Lets what operations of this thread save until the guard ends be computed again in the backward pass, by a
 * function, instead of being kept. [func@checkpoint] does this for one function.
 *
 * The function is called when a pass first needs one of the saved tensors, in its thread, or in the main
 * context of the caller of [method@Tensor.backward_async]. It finds the random numbers, mixed precision and
 * current streams that were there when the guard began, and the tensors of modules: in a replica those of the
 * replica, in a call of a module with [class@ModuleShards] whole parameters. It records gradients, and must
 * use the inputs that it gets. It is ended by an error of an operation if @early_stop is set, which it has to
 * pass on.
 *
 * Returns: (transfer full): a guard, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchSavedTensorsGuard *
gtorch_checkpoint_begin (GTorchRecomputeFunc recompute, gpointer user_data, GDestroyNotify destroy,
                         GTorchTensor **inputs, gsize n_inputs, gboolean preserve_rng_state,
                         gboolean determinism_check, gboolean early_stop, GError **error)
{
  Frame *self;

  g_return_val_if_fail (recompute != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  self = g_new0 (Frame, 1);
  gtorch_saved_hooks_init (&self->hooks, &frame_class);
  self->recompute = recompute;
  self->user_data = user_data;
  self->destroy = destroy;
  self->checks = determinism_check;
  self->early_stop = early_stop;
  self->slots = g_array_new (FALSE, FALSE, sizeof (Slot));
  self->tables = g_ptr_array_new_with_free_func (table_free);
  g_mutex_init (&self->lock);
  gtorch_thread_streams_take (&self->streams);
  gtorch_autocast_get (&self->autocast);
  gtorch_surroundings_take (&self->surroundings);
  self->n_captured = self->n_captured_at_end = gtorch_thread.n_captured;
  if (preserve_rng_state)
    self->random = gtorch_random_states_new ();
  if (!gtorch_saved_hooks_are_allowed ("checkpoint", error)
      || !save_inputs (self, inputs, n_inputs, error))
    {
      gtorch_saved_hooks_unref (self);
      return NULL;
    }
  return gtorch_saved_tensors_guard_new (&self->hooks);
}
