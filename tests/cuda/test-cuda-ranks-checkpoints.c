/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checkpoints around and within calls of modules whose parameters are divided among ranks. */

#include "config.h"

#include "cuda-test.h"

#include <gtorch/distributed/gtorch-module-shards-private.h>

/* --- a class of the program's own --- */

typedef enum
{
  PLAIN,
  CHECKPOINT,
  REENTRANT,
} Calling;

/* Calls one module after the other. */
typedef struct
{
  GTorchModule parent_instance;
  GTorchModule *parts[2];
  Calling calling;
  gint n_left; /* calls until one that fails */
} TestChain;

typedef GTorchModuleClass TestChainClass;

static GType test_chain_get_type (void);

G_DEFINE_TYPE (TestChain, test_chain, GTORCH_TYPE_MODULE)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TestChain, g_object_unref)

static GTorchTensor *
test_chain_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  TestChain *chain = (TestChain *) module;
  g_autoptr (GTorchTensor) value = g_object_ref (input);
  guint i;

  if (--chain->n_left == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "chain: this call fails");
      return NULL;
    }
  for (i = 0; i < G_N_ELEMENTS (chain->parts); i++)
    {
      g_autoptr (GTorchTensor) output =
          chain->calling == PLAIN
              ? gtorch_module_forward (chain->parts[i], value, error)
              : gtorch_module_checkpoint (chain->parts[i], &value, 1, chain->calling == REENTRANT,
                                          TRUE, TRUE, TRUE, error);

      g_clear_object (&value);
      value = output == NULL ? NULL : gtorch_tensor_tanh (output, error);
      if (value == NULL)
        return NULL;
    }
  return g_steal_pointer (&value);
}

static void
test_chain_dispose (GObject *object)
{
  TestChain *chain = (TestChain *) object;

  g_clear_object (&chain->parts[0]);
  g_clear_object (&chain->parts[1]);
  G_OBJECT_CLASS (test_chain_parent_class)->dispose (object);
}

static void
test_chain_class_init (TestChainClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = test_chain_dispose;
  klass->forward = test_chain_forward;
}

static void
test_chain_init (TestChain *chain)
{
}

/* --- the ranks --- */

/* Here, since functions of the macro above have variables of the name of the rank. */
#include "cuda-ranks.h"

/* Takes the modules. */
static TestChain *
chain_new (GTorchModule *first, GTorchModule *second, Calling calling)
{
  TestChain *chain = g_object_new (test_chain_get_type (), NULL);
  g_autoptr (GError) error = NULL;

  chain->parts[0] = first;
  chain->parts[1] = second;
  chain->calling = calling;
  g_assert_true (
      gtorch_module_register_module (GTORCH_MODULE (chain), "first", first, &error)
      && gtorch_module_register_module (GTORCH_MODULE (chain), "second", second, &error));
  g_assert_no_error (error);
  return chain;
}

/* A chain of a chain of two layers, and a layer. */
static TestChain *
make_chain (Calling calling, GTorchDevice *device)
{
  g_autoptr (GError) error = NULL;
  TestChain *inner = chain_new (GTORCH_MODULE (gtorch_linear_new (5, 7, NULL)),
                                GTORCH_MODULE (gtorch_linear_new (7, 6, NULL)), calling);
  TestChain *chain =
      chain_new (GTORCH_MODULE (inner), GTORCH_MODULE (gtorch_linear_new (6, 3, NULL)), calling);

  fill (GTORCH_MODULE (chain));
  g_assert_true (gtorch_module_to (GTORCH_MODULE (chain), device, GTORCH_DTYPE_NONE, &error));
  g_assert_no_error (error);
  return chain;
}

static GTorchModuleShards *
divide (gpointer module, gboolean reshard, GTorchProcessGroup *nearby)
{
  g_autoptr (GError) error = NULL;
  GTorchModuleShards *shards =
      gtorch_module_shards_new (module, self->group, reshard, GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE,
                                GTORCH_DTYPE_NONE, &error);

  g_assert_no_error (error);
  if (nearby != NULL)
    g_assert_true (gtorch_module_shards_set_nearby (shards, nearby, &error));
  g_assert_no_error (error);
  return shards;
}

/* The gradients of two passes, between which the parts change, and of the inputs. */
static GPtrArray *
collect_grads (TestChain *chain)
{
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer (GTORCH_MODULE (chain), FALSE);
  g_autoptr (GListModel) params = gtorch_module_get_parameters (GTORCH_MODULE (chain), TRUE);
  GPtrArray *grads = g_ptr_array_new_with_free_func (g_object_unref);
  guint i, k;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) input = batch ((gint) i, self->rank, self->size, gpu (self->rank));

      g_assert_true (gtorch_tensor_set_requires_grad (input, TRUE, NULL));
      step (GTORCH_MODULE (chain), optimizer, input);
      g_ptr_array_add (grads, gtorch_tensor_get_grad (input));
      for (k = 0; k < g_list_model_get_n_items (params); k++)
        {
          g_autoptr (GTorchTensor) param = g_list_model_get_item (params, k);

          g_ptr_array_add (grads, gtorch_tensor_get_grad (param));
        }
    }
  return grads;
}

static void
assert_same_bits (GPtrArray *these, GPtrArray *those)
{
  guint i;

  g_assert_cmpuint (these->len, ==, those->len);
  for (i = 0; i < these->len; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_unwrap (these->pdata[i]);
      g_autofree gdouble *a = read_doubles (gtorch_tensor_unwrap (these->pdata[i]));
      g_autofree gdouble *b = read_doubles (gtorch_tensor_unwrap (those->pdata[i]));

      g_assert_true (gtorch_impl_same_shape (impl, gtorch_tensor_unwrap (those->pdata[i])));
      g_assert_cmpmem (a, impl->numel * sizeof *a, b, impl->numel * sizeof *b);
    }
}

/* Returns gradients. Nothing is whole any more in the end. */
static GPtrArray *
train_chain (Calling calling, gboolean reshard, GTorchProcessGroup *nearby, TestChain *alone)
{
  g_autoptr (TestChain) chain = make_chain (calling, gpu (self->rank));
  g_autoptr (GTorchModuleShards) inner = divide (chain->parts[0], reshard, nearby);
  g_autoptr (GTorchModuleShards) outer = divide (chain, reshard, nearby);
  g_autoptr (GTorchTensor) input = batch (0, self->rank, self->size, gpu (self->rank));
  g_autoptr (GError) error = NULL;
  GPtrArray *grads = collect_grads (chain);

  g_assert_true (inner->depth == 0 && inner->fulls == NULL && inner->whole == NULL);
  g_assert_true (outer->depth == 0 && outer->fulls == NULL && outer->whole == NULL);
  assert_same (GTORCH_MODULE (chain), GTORCH_MODULE (alone));
  /* the layer is in a call no more */
  g_assert_null (gtorch_module_forward (((TestChain *) chain->parts[0])->parts[0], input, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_true (g_str_has_prefix (error->message, "module_shards: GTorchLinear was called "
                                                   "outside of a call of the module"));
  return grads;
}

static void
checkpoints_gather_parameters_again (void)
{
  const gint64 pairs[][2] = { { 0, 1 }, { 2, 3 } };
  g_autoptr (TestChain) alone = make_chain (PLAIN, gtorch_device_cpu ());
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer (GTORCH_MODULE (alone), FALSE);
  GTorchProcessGroup *nearby[2];
  g_autoptr (GError) error = NULL;
  guint how, i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) input = batch ((gint) i, 0, 1, gtorch_device_cpu ());

      step (GTORCH_MODULE (alone), optimizer, input);
      nearby[i] = gtorch_process_group_new_part (self->group, pairs[i], 2, -1, &error);
      g_assert_no_error (error);
    }
  for (how = 0; how < 3; how++) /* kept, dropped, kept in parts */
    {
      GTorchProcessGroup *near = how == 2 ? nearby[self->rank / 2] : NULL;
      g_autoptr (GPtrArray) wanted = train_chain (PLAIN, how > 0, near, alone);
      Calling calling;

      for (calling = CHECKPOINT; calling <= REENTRANT; calling++)
        {
          g_autoptr (GPtrArray) grads = train_chain (calling, how > 0, near, alone);

          assert_same_bits (grads, wanted);
        }
    }
  g_object_unref (nearby[0]);
  g_object_unref (nearby[1]);
}

/* Of a second call that fails, nothing stays whole, and the next pass is as any other one. */
static void
second_calls_may_fail (void)
{
  g_autoptr (TestChain) chain = make_chain (CHECKPOINT, gpu (self->rank));
  TestChain *first = (TestChain *) chain->parts[0];
  g_autoptr (GTorchModuleShards) inner = divide (first, TRUE, NULL);
  g_autoptr (GTorchModuleShards) outer = divide (chain, TRUE, NULL);
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer (GTORCH_MODULE (chain), FALSE);
  g_autoptr (GTorchTensor) input = batch (0, self->rank, self->size, gpu (self->rank));
  g_autoptr (GTorchTensor) output = NULL;
  g_autoptr (GError) error = NULL;

  first->n_left = 2;
  output = gtorch_module_forward (GTORCH_MODULE (chain), input, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_tensor_backward (output, output, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "chain: this call fails"));
  g_clear_object (&output);
  g_assert_true (inner->depth == 0 && inner->fulls == NULL && inner->whole == NULL);
  g_assert_true (outer->depth == 0 && outer->fulls == NULL && outer->whole == NULL);
  step (GTORCH_MODULE (chain), optimizer, input);
  g_assert_true (inner->whole == NULL && outer->whole == NULL);
}

static const RankCase cases[] = {
  { "checkpoints_gather_parameters_again", 4, checkpoints_gather_parameters_again },
  { "second_calls_may_fail", 2, second_calls_may_fail },
};

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (300);
  add_cases (cases, G_N_ELEMENTS (cases));
  return g_test_run ();
}
