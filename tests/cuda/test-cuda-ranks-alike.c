/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the ranks of a group must have alike, where they are threads of one process: all of them get an error
 * that names the rank and the difference. And the names of operations that consist of several. */

#include "config.h"

#include "cuda-ranks.h"

static GTorchModule *
linear (gint64 n_in, gint64 n_out, gboolean has_bias, GTorchDType dtype)
{
  g_autoptr (GError) error = NULL;
  GTorchLinear *layer = g_object_new (GTORCH_TYPE_LINEAR, "in-features", n_in, "out-features",
                                      n_out, "has-bias", has_bias, NULL);

  g_assert_true (gtorch_module_to (GTORCH_MODULE (layer), gpu (self->rank), dtype, &error));
  g_assert_no_error (error);
  return GTORCH_MODULE (layer);
}

static GTorchTensor *
send_plainly (GTorchGradBucket *bucket, gpointer data, GError **error)
{
  return gtorch_grad_bucket_average (bucket, GTORCH_DTYPE_NONE, error);
}

/* Two layers, of which the second differs in one rank. */
static GTorchModule *
two_layers (GTorchModule *second)
{
  GTorchSequential *model = gtorch_sequential_new ();
  g_autoptr (GTorchModule) first = linear (5, 7, TRUE, GTORCH_DTYPE_NONE);
  g_autoptr (GTorchModule) owned = second;

  g_assert_true (gtorch_sequential_append (model, first, NULL));
  g_assert_true (gtorch_sequential_append (model, owned, NULL));
  return GTORCH_MODULE (model);
}

static void
assert_differ (gpointer made, GError **error, const gchar *message)
{
  g_assert_null (made);
  g_assert_error (*error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}

static GTorchModuleShards *
shard (GTorchModule *module, GTorchDType param_dtype, GError **error)
{
  return gtorch_module_shards_new (module, self->group, TRUE, param_dtype, GTORCH_DTYPE_NONE,
                                   GTORCH_DTYPE_NONE, error);
}

static void
modules_that_are_divided (void)
{
  const gboolean is_odd = self->rank == 2;
  g_autoptr (GTorchModule) wide = two_layers (linear (7, is_odd ? 4 : 3, TRUE, GTORCH_DTYPE_NONE));
  g_autoptr (GTorchModule) plain = two_layers (linear (7, 3, !is_odd, GTORCH_DTYPE_NONE));
  g_autoptr (GTorchModule) same = two_layers (linear (7, 3, TRUE, GTORCH_DTYPE_NONE));
  g_autoptr (GTorchModule) none = NULL;
  g_autoptr (GTorchModuleShards) shards = NULL;
  g_autoptr (GError) error = NULL;

  assert_differ (shard (wide, GTORCH_DTYPE_NONE, &error), &error,
                 "module_shards: the ranks differ: “1.weight” is float32 [3, 7] on rank 0, and "
                 "float32 [4, 7] on rank 2");
  assert_differ (shard (plain, GTORCH_DTYPE_NONE, &error), &error,
                 "module_shards: the ranks differ: rank 0 has “1.bias”, float32 [3], and rank 2 "
                 "has no such parameter");
  assert_differ (shard (same, is_odd ? GTORCH_DTYPE_BFLOAT16 : GTORCH_DTYPE_NONE, &error), &error,
                 "module_shards: the ranks differ: “param_dtype” is that of the parameters on rank "
                 "0, and bfloat16 on rank 2");
  /* a rank that cannot divide its module tells the others; nothing was divided so far */
  none = is_odd ? two_layers (linear (7, 3, TRUE, GTORCH_DTYPE_FLOAT64)) : g_object_ref (same);
  g_assert_null (shard (none, GTORCH_DTYPE_NONE, &error));
  g_assert_nonnull (strstr (error->message, "is of another dtype or device than the first one"));
  g_assert_true (g_str_has_prefix (error->message,
                                   is_odd ? "module_shards: the parameter “weight”"
                                          : "module_shards: rank 2 has an error: module_shards: "));
  g_clear_error (&error);
  shards = shard (same, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
}

static void
modules_that_are_replicated (void)
{
  g_autoptr (GTorchModule) model =
      two_layers (linear (7, 3, TRUE, self->rank == 1 ? GTORCH_DTYPE_FLOAT64 : GTORCH_DTYPE_NONE));
  g_autoptr (GTorchModule) other =
      two_layers (linear (self->rank == 1 ? 7 : 6, 3, TRUE, GTORCH_DTYPE_NONE));
  g_autoptr (GError) error = NULL;

  assert_differ (gtorch_distributed_module_new (model, self->group, 25, TRUE, FALSE, &error),
                 &error,
                 "distributed_module: the ranks differ: “1.weight” is float32 [3, 7] on rank 0, "
                 "and "
                 "float64 [3, 7] on rank 1");
  assert_differ (gtorch_distributed_module_new (other, self->group, 25, TRUE, FALSE, &error),
                 &error,
                 "distributed_module: the ranks differ: “1.weight” is float32 [3, 6] on rank 0, "
                 "and "
                 "float32 [3, 7] on rank 1");
}

/* What decides which gradients go together, and when, must be alike too. */
static void
settings_of_modules (void)
{
  const gboolean is_odd = self->rank == 1;
  g_autoptr (GTorchModule) model = two_layers (linear (7, 3, TRUE, GTORCH_DTYPE_NONE));
  g_autoptr (GTorchDistributedModule) made = NULL;
  g_autoptr (GTorchTensor) input =
      gtorch_ones (GTORCH_SHAPE (2, 5), GTORCH_DTYPE_FLOAT32, gpu (self->rank), NULL);
  g_autoptr (GError) error = NULL;

  assert_differ (gtorch_distributed_module_new (model, self->group, is_odd ? 25 : 0.5, TRUE, FALSE,
                                                &error),
                 &error,
                 "distributed_module: the ranks differ: “bucket_cap_mb” is 0.5 on rank 0, and 25 "
                 "on "
                 "rank 1");
  assert_differ (gtorch_distributed_module_new (model, self->group, 25, !is_odd, FALSE, &error),
                 &error,
                 "distributed_module: the ranks differ: “broadcast_buffers” is true on rank 0, and "
                 "false on "
                 "rank 1");
  assert_differ (gtorch_distributed_module_new (model, self->group, 25, TRUE, is_odd, &error),
                 &error,
                 "distributed_module: the ranks differ: “find_unused_parameters” is false on rank "
                 "0, and true "
                 "on rank 1");
  assert_differ (gtorch_distributed_module_new_full (model, self->group, 25, TRUE, FALSE, !is_odd,
                                                     FALSE, &error),
                 &error,
                 "distributed_module: the ranks differ: “init_sync” is true on rank 0, and false "
                 "on rank 1");
  assert_differ (gtorch_distributed_module_new_full (model, self->group, 25, TRUE, FALSE, FALSE,
                                                     is_odd, &error),
                 &error,
                 "distributed_module: the ranks differ: “static_graph” is false on rank 0, and "
                 "true "
                 "on rank 1");
  /* what is set later is compared before the first exchange */
  made = gtorch_distributed_module_new (model, self->group, 25, TRUE, FALSE, &error);
  g_assert_no_error (error);
  if (is_odd)
    g_assert_true (
        gtorch_distributed_module_register_comm_hook (made, send_plainly, NULL, NULL, &error));
  assert_differ (gtorch_module_forward (GTORCH_MODULE (made), input, &error), &error,
                 "distributed_module: the ranks differ: “comm_hook” is no function on rank 0, and "
                 "a function on rank 1");
}

/* Gradients of other rows would be averaged. */
static void
replicas_that_are_parts (void)
{
  g_autoptr (GTorchModule) model = two_layers (linear (7, 3, TRUE, GTORCH_DTYPE_NONE));
  g_autoptr (GTorchModuleShards) shards = NULL;
  g_autoptr (GError) error = NULL;

  shards = shard (model, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_module_shards_set_replicas (shards, self->group, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_nonnull (strstr (error->message, "“the rank in the group of the parts” is 0 of"));
  g_assert_null (gtorch_module_shards_get_replicas (shards));
}

static void
rates_of_optimizers (void)
{
  g_autoptr (GTorchModule) model = linear (5, 7, TRUE, GTORCH_DTYPE_NONE);
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer (model, FALSE);
  g_autoptr (GTorchParamGroup) params =
      g_list_model_get_item (gtorch_optimizer_get_param_groups (optimizer), 0);
  g_autoptr (GError) error = NULL;

  gtorch_param_group_set_learning_rate (params, self->rank == 1 ? 0.25 : 0.5);
  assert_differ (gtorch_sharded_optimizer_new (optimizer, self->group, &error), &error,
                 "sharded_optimizer: the ranks differ: “param_groups[0].lr” is 0.5 on rank 0, and "
                 "0.25 on rank 1");
}

static void
optimizers_and_layers (void)
{
  g_autoptr (GTorchModule) model = linear (5, 7, TRUE, GTORCH_DTYPE_NONE);
  g_autoptr (GTorchModule) other = linear (5, 7 + self->rank, TRUE, GTORCH_DTYPE_NONE);
  g_autoptr (GTorchOptimizer) first = make_optimizer (model, self->rank == 1);
  g_autoptr (GTorchOptimizer) second = make_optimizer (other, FALSE);
  g_autoptr (GError) error = NULL;

  assert_differ (gtorch_sharded_optimizer_new (first, self->group, &error), &error,
                 "sharded_optimizer: the ranks differ: “the optimizer” is GTorchSGD on rank 0, and "
                 "GTorchAdam on rank 1");
  assert_differ (gtorch_sharded_optimizer_new (second, self->group, &error), &error,
                 "sharded_optimizer: the ranks differ: “parameter 0” is float32 [7, 5] on rank 0, "
                 "and float32 [8, 5] on rank 1");
  assert_differ (GINT_TO_POINTER (gtorch_parallelize_columns (other, self->group, FALSE, &error)),
                 &error,
                 "parallelize_columns: the ranks differ: “weight” is float32 [7, 5] on rank 0, and "
                 "float32 "
                 "[8, 5] on rank 1");
  assert_differ (GINT_TO_POINTER (
                     gtorch_parallelize_rows (model, self->group, self->rank == 1, &error)),
                 &error,
                 "parallelize_rows: the ranks differ: “split_input” is false on rank 0, and true "
                 "on rank 1");
}

static GTorchTensor *
send_low_rank (GTorchGradBucket *bucket, gpointer sgd, GError **error)
{
  return gtorch_power_sgd_average (sgd, bucket, error);
}

static void
settings_of_exchanges (void)
{
  g_autoptr (GTorchModule) model = linear (5, 7, TRUE, GTORCH_DTYPE_NONE);
  g_autoptr (GTorchDistributedModule) replica = NULL;
  g_autoptr (GTorchPowerSGD) sgd = NULL;
  g_autoptr (GTorchTensor) input = batch (0, self->rank, self->size, gpu (self->rank));
  g_autoptr (GTorchTensor) output = NULL, loss = NULL;
  g_autoptr (GError) error = NULL;

  replica = gtorch_distributed_module_new (model, self->group, 25, TRUE, FALSE, &error);
  g_assert_no_error (error);
  sgd = gtorch_power_sgd_new (1 + (guint) self->rank, 0, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_distributed_module_register_comm_hook (replica, send_low_rank,
                                                               g_object_ref (sgd), g_object_unref,
                                                               &error));
  g_assert_no_error (error);
  output = gtorch_module_forward (GTORCH_MODULE (replica), input, &error);
  g_assert_no_error (error);
  loss = gtorch_tensor_sum (output, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_false (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  g_assert_nonnull (strstr (error->message, "power_sgd: the ranks differ: "
                                            "“matrix_approximation_rank” is 1 on rank 0, and 2 on "
                                            "rank 1"));
}

static void
layers_that_share_statistics (void)
{
  const gint64 n = 3 + self->rank;
  g_autoptr (GTorchModule) layer =
      g_object_new (GTORCH_TYPE_SYNC_BATCH_NORM, "num-features", n, NULL);
  g_autoptr (GTorchTensor) input = NULL, output = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_module_to (layer, gpu (self->rank), GTORCH_DTYPE_NONE, &error));
  g_assert_true (gtorch_synchronize_batch_norm (layer, self->group, &error));
  g_assert_no_error (error);
  input = numbers (GTORCH_SHAPE (2, n), 0, gpu (self->rank));
  assert_differ (gtorch_module_forward (layer, input, &error), &error,
                 "sync_batch_norm: the ranks differ: “num_features” is 3 on rank 0, and 4 on rank "
                 "1");
}

/* The operation that the program has called is named, not those that it consists of. */
static void
outer_operations_are_named (void)
{
  g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (4), 0, gpu (self->rank));
  g_autoptr (GTorchModule) model = linear (5, 7, TRUE, GTORCH_DTYPE_NONE);
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_distributed_begin_operation ("share_settings");
  gtorch_distributed_begin_operation ("inner");
  gtorch_distributed_end_operation ();
  g_assert_null (gtorch_process_group_broadcast (self->group, x, 7, &error));
  g_assert_cmpstr (error->message, ==, "share_settings: rank 7 is out of range for 2 processes");
  g_clear_error (&error);
  gtorch_distributed_end_operation ();
  gtorch_distributed_end_operation (); /* nothing was begun */
  g_assert_null (gtorch_process_group_broadcast (self->group, x, 7, &error));
  g_assert_cmpstr (error->message, ==, "broadcast: rank 7 is out of range for 2 processes");
  g_clear_error (&error);
  /* values that are no tensors go through the CPU's memory, which NCCL does not take */
  g_assert_null (
      gtorch_process_group_broadcast_variant (self->group, g_variant_new_int32 (1), 0, &error));
  g_assert_true (g_str_has_prefix (error->message, "broadcast_variant: a tensor is on cpu"));
  g_clear_error (&error);
  g_assert_true (gtorch_process_group_abort (self->group, &error));
  g_assert_no_error (error);
  g_assert_null (shard (model, GTORCH_DTYPE_NONE, &error));
  g_assert_true (g_str_has_prefix (error->message, "module_shards: the group has failed"));
}

static const RankCase cases[] = {
  { "modules_that_are_divided", 3, modules_that_are_divided },
  { "modules_that_are_replicated", 2, modules_that_are_replicated },
  { "settings_of_modules", 2, settings_of_modules },
  { "replicas_that_are_parts", 2, replicas_that_are_parts },
  { "rates_of_optimizers", 2, rates_of_optimizers },
  { "optimizers_and_layers", 2, optimizers_and_layers },
  { "settings_of_exchanges", 2, settings_of_exchanges },
  { "layers_that_share_statistics", 2, layers_that_share_statistics },
  { "outer_operations_are_named", 2, outer_operations_are_named },
};

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  alarm (300);
  add_cases (cases, G_N_ELEMENTS (cases));
  return g_test_run ();
}
