/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Groups whose ranks are threads of one process, each with a GPU of its own, on the fake driver and the fake
 * NCCL: collectives, and the classes that stand on them. What they compute is compared with one module that
 * has the whole batch, on the CPU. */

#include "config.h"

#include <glib/gstdio.h>

#include "cuda-ranks.h"

/* --- collectives --- */

static void
assert_done (GTorchWork *work, GError *error)
{
  g_autoptr (GTorchWork) owned = work;
  g_autoptr (GError) local = NULL;

  g_assert_no_error (error);
  g_assert_true (gtorch_work_wait (work, -1, NULL, &local));
  g_assert_no_error (local);
}

static void
assert_number (GTorchTensor *tensor, gdouble expected)
{
  g_autoptr (GError) error = NULL;
  const gdouble value = gtorch_tensor_item_double (tensor, &error);

  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (value, expected, 1e-6);
}

static GTorchTensor *
number (gdouble value)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor =
      gtorch_full (GTORCH_SHAPE (1), value, GTORCH_DTYPE_FLOAT32, gpu (self->rank), &error);

  g_assert_no_error (error);
  return tensor;
}

static void
threads_exchange (void)
{
  const gint64 pair[] = { 0, 1 };
  g_autoptr (GTorchTensor) x = number (self->rank + 1), y = number (self->rank), z = number (0);
  g_autoptr (GTorchProcessGroup) part = NULL, second = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  for (i = 0; i < 20; i++)
    {
      assert_done (gtorch_process_group_all_reduce (self->group, x, GTORCH_REDUCE_OP_AVG, &error),
                   error);
      assert_number (x, (self->size + 1) / 2.0);
    }
  assert_done (gtorch_process_group_broadcast (self->group, y, 1, &error), error);
  assert_number (y, 1);
  part = gtorch_process_group_new_part (self->group, pair, 2, -1, &error);
  g_assert_no_error (error);
  if (self->rank < 2)
    {
      g_autoptr (GTorchTensor) mine = number (self->rank + 5);
      g_autoptr (GTorchWork) sent =
          gtorch_process_group_send (part, mine, 1 - self->rank, 0, &error);

      g_assert_no_error (error);
      assert_done (gtorch_process_group_recv (part, z, 1 - self->rank, 0, &error), error);
      assert_done (g_steal_pointer (&sent), NULL);
      assert_number (z, 6 - self->rank);
    }
  /* a second group of all, by the same store */
  second = gtorch_process_group_new ("nccl", self->store, self->rank, self->size, 60, NULL, &error);
  g_assert_no_error (error);
  assert_done (gtorch_process_group_all_reduce (second, x, GTORCH_REDUCE_OP_SUM, &error), error);
  assert_number (x, self->size * (self->size + 1) / 2.0);
  g_assert_true (gtorch_process_group_monitored_barrier (self->group, 30, NULL, &error));
  g_assert_no_error (error);
}

static void
numbers_are_multiplied_before (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };
  const gint n = self->size;
  g_autoptr (GTorchTensor) ints = NULL;
  g_autoptr (GError) error = NULL;
  guint d;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      g_autoptr (GTorchTensor) one = number (self->rank + 1), x = NULL, part = NULL, all = NULL;

      x = gtorch_tensor_to_dtype (one, dtypes[d], &error);
      part = gtorch_tensor_clone (x, &error);
      all = gtorch_full (GTORCH_SHAPE (n), self->rank + 1, dtypes[d], gpu (self->rank), &error);
      g_assert_no_error (error);
      /* the sum of (r + 1)² / 2, which all of these dtypes have */
      assert_done (gtorch_process_group_all_reduce_premul (self->group, x, 0.5 * (self->rank + 1),
                                                           &error),
                   error);
      assert_number (x, n * (n + 1) * (2 * n + 1) / 12.0);
      assert_done (gtorch_process_group_reduce_scatter_tensor_premul (self->group, part, all, 2,
                                                                      &error),
                   error);
      assert_number (part, n * (n + 1));
    }
  ints = gtorch_full (GTORCH_SHAPE (1), 1, GTORCH_DTYPE_INT32, gpu (self->rank), &error);
  g_assert_no_error (error);
  g_assert_null (gtorch_process_group_all_reduce_premul (self->group, ints, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_cmpstr (error->message, ==,
                   "all_reduce_premul: the tensor is of int32; a factor is for floating-point "
                   "numbers");
}

static void
a_thread_that_does_not_come_is_named (void)
{
  g_autoptr (GTorchTensor) x = number (1);
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GError) error = NULL;

  assert_done (gtorch_process_group_all_reduce (self->group, x, GTORCH_REDUCE_OP_SUM, &error),
               error);
  g_assert_true (gtorch_process_group_set_timeout (self->group, 1, NULL));
  if (self->rank == 1)
    {
      g_usleep (3 * G_USEC_PER_SEC);
      return;
    }
  work = gtorch_process_group_all_reduce (self->group, x, GTORCH_REDUCE_OP_SUM, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_work_wait (work, 20, NULL, &error));
  g_assert_nonnull (error);
  /* whoever asks who is missing tells the other one */
  g_assert_nonnull (strstr (error->message, "rank 1 "));
}

/* --- parameters --- */

static void
shard_all (GTorchSequential *model, GTorchProcessGroup *group, GTorchProcessGroup *replicas,
           gboolean reshard, gboolean offload)
{
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < 3; i++)
    {
      /* the layer has a reference */
      g_autoptr (GTorchModule) layer = layer_of (model, i);
      g_autoptr (GTorchModuleShards) shards =
          gtorch_module_shards_new (layer, group, reshard, GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE,
                                    GTORCH_DTYPE_NONE, &error);

      g_assert_no_error (error);
      if (replicas != NULL)
        g_assert_true (gtorch_module_shards_set_replicas (shards, replicas, &error));
      if (offload)
        g_assert_true (gtorch_module_shards_offload (shards, TRUE, &error));
      g_assert_no_error (error);
    }
}

static void
train_parts (GTorchProcessGroup *group, GTorchProcessGroup *replicas, gboolean reshard,
             gboolean offload)
{
  g_autoptr (GTorchSequential) alone = train_alone (FALSE);
  g_autoptr (GTorchSequential) model = make_model (gpu (self->rank));
  g_autoptr (GTorchOptimizer) optimizer = NULL;
  gint i;

  shard_all (model, group, replicas, reshard, offload);
  optimizer = make_optimizer (GTORCH_MODULE (model), FALSE);
  for (i = 0; i < N_STEPS; i++)
    {
      g_autoptr (GTorchTensor) input = batch (i, self->rank, self->size, gpu (self->rank));

      step (GTORCH_MODULE (model), optimizer, input);
    }
  if (offload)
    {
      g_autoptr (GListModel) params = gtorch_module_get_parameters (GTORCH_MODULE (model), TRUE);
      g_autoptr (GTorchTensor) param = g_list_model_get_item (params, 0);
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (param);

      g_assert_true (gtorch_tensor_is_pinned (param));
      g_assert_true (gtorch_tensor_get_device (grad) == gtorch_device_cpu ());
    }
  assert_same (GTORCH_MODULE (model), GTORCH_MODULE (alone));
}

static void
parts_train (void)
{
  train_parts (self->group, NULL, TRUE, FALSE);
  train_parts (self->group, NULL, FALSE, FALSE);
}

static void
parts_train_in_the_memory_of_the_cpu (void)
{
  train_parts (self->group, NULL, TRUE, TRUE);
}

static void
replicas_train (void)
{
  const gint64 shape[] = { 2, 2 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDeviceMesh) mesh = gtorch_device_mesh_new (self->group, shape, 2, NULL, &error);

  g_assert_no_error (error);
  train_parts (gtorch_device_mesh_get_group (mesh, 1, NULL),
               gtorch_device_mesh_get_group (mesh, 0, NULL), TRUE, FALSE);
}

static void
norms_and_overflows_are_those_of_all (void)
{
  static const gdouble types[] = { 2, 1, INFINITY };
  g_autoptr (GTorchSequential) alone = make_model (gtorch_device_cpu ());
  g_autoptr (GTorchSequential) model = make_model (gpu (self->rank));
  g_autoptr (GTorchTensor) input = batch (0, self->rank, self->size, gpu (self->rank));
  g_autoptr (GTorchTensor) whole = batch (0, 0, 1, gtorch_device_cpu ());
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_autoptr (GTorchOptimizer) optimizer = NULL;
  g_autoptr (GPtrArray) params = NULL, others = NULL;
  g_autoptr (GTorchTensor) grad = NULL, before = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  shard_all (model, self->group, NULL, TRUE, FALSE);
  optimizer = make_optimizer (GTORCH_MODULE (model), FALSE);
  params = gtorch_optimizer_dup_params (optimizer);
  backward (GTORCH_MODULE (model), input, NULL);
  backward (GTORCH_MODULE (alone), whole, NULL);
  {
    g_autoptr (GTorchOptimizer) other = make_optimizer (GTORCH_MODULE (alone), FALSE);

    others = gtorch_optimizer_dup_params (other);
  }
  for (i = 0; i < G_N_ELEMENTS (types); i++)
    {
      g_autoptr (GTorchTensor) norm =
          gtorch_clip_grad_norm ((GTorchTensor **) params->pdata, params->len, 1e9, types[i], FALSE,
                                 &error);
      g_autoptr (GTorchTensor) expected =
          gtorch_clip_grad_norm ((GTorchTensor **) others->pdata, others->len, 1e9, types[i], FALSE,
                                 NULL);

      g_assert_no_error (error);
      assert_close (norm, expected);
    }
  /* one rank has an overflow: no rank makes the step */
  g_assert_true (gtorch_optimizer_zero_grad (optimizer, TRUE, &error));
  backward (GTORCH_MODULE (model), input, scaler);
  before = gtorch_tensor_clone (params->pdata[0], &error);
  grad = gtorch_tensor_get_grad (params->pdata[0]);
  if (self->rank == 1)
    g_assert_nonnull (gtorch_tensor_fill_inplace (grad, INFINITY, &error));
  g_assert_true (gtorch_grad_scaler_step (scaler, optimizer, &error));
  g_assert_no_error (error);
  assert_close (params->pdata[0], before);
}

static GFile *saved; /* the index that all ranks write */

/* Four ranks write their rows, one thread reads whole tensors. */
static void
parts_are_saved_as_whole_tensors (void)
{
  g_autoptr (GTorchSequential) alone = make_model (gtorch_device_cpu ());
  g_autoptr (GTorchSequential) model = make_model (gpu (self->rank));
  g_autoptr (GListModel) params = NULL, others = NULL;
  g_autoptr (GPtrArray) tensors = g_ptr_array_new_with_free_func (g_object_unref), found = NULL;
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) read = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  shard_all (model, self->group, NULL, TRUE, FALSE);
  params = gtorch_module_get_parameters (GTORCH_MODULE (model), TRUE);
  others = gtorch_module_get_parameters (GTORCH_MODULE (alone), TRUE);
  for (i = 0; i < g_list_model_get_n_items (params); i++)
    {
      g_ptr_array_add (names, g_strdup_printf ("param%u", i));
      g_ptr_array_add (tensors, g_list_model_get_item (params, i));
    }
  g_ptr_array_add (names, NULL);
  /* a file for each tensor, and for the rows of one rank alone an error */
  g_assert_false (gtorch_safetensors_save_index (saved, (const gchar *const *) names->pdata,
                                                 (GTorchTensor **) tensors->pdata, tensors->len,
                                                 NULL, 1, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "all of these write together"));
  g_clear_error (&error);
  g_assert_true (gtorch_safetensors_save_index (saved, (const gchar *const *) names->pdata,
                                                (GTorchTensor **) tensors->pdata, tensors->len,
                                                NULL, 100, self->group, NULL, &error));
  g_assert_no_error (error);
  found = gtorch_safetensors_load_index (saved, (const gchar *const *) names->pdata, TRUE,
                                         gtorch_device_cpu (), &read, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (found->len, ==, tensors->len);
  for (i = 0; i < found->len; i++)
    {
      const guint which = (guint) g_ascii_strtoull (read[i] + strlen ("param"), NULL, 10);
      g_autoptr (GTorchTensor) expected = g_list_model_get_item (others, which);

      assert_close (found->pdata[i], expected);
    }
}

static void
states_are_spread (void)
{
  g_autoptr (GTorchSequential) alone = train_alone (TRUE);
  g_autoptr (GTorchSequential) model = make_model (gpu (self->rank));
  g_autoptr (GTorchDistributedModule) shared = NULL;
  g_autoptr (GTorchShardedOptimizer) shard = NULL;
  g_autoptr (GTorchOptimizer) adam = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  shared =
      gtorch_distributed_module_new (GTORCH_MODULE (model), self->group, 25, TRUE, FALSE, &error);
  g_assert_no_error (error);
  adam = make_optimizer (GTORCH_MODULE (model), TRUE);
  shard = gtorch_sharded_optimizer_new (adam, self->group, &error);
  g_assert_no_error (error);
  for (i = 0; i < N_STEPS; i++)
    {
      g_autoptr (GTorchTensor) input = batch (i, self->rank, self->size, gpu (self->rank));

      step (GTORCH_MODULE (shared), adam, input);
    }
  assert_same (GTORCH_MODULE (model), GTORCH_MODULE (alone));
  g_assert_true (gtorch_sharded_optimizer_consolidate (shard, 1, &error));
  g_assert_no_error (error);
  if (self->rank == 1)
    {
      g_autoptr (GHashTable) state = gtorch_sharded_optimizer_state_dict (shard, &error);

      g_assert_no_error (error);
      g_assert_true (g_hash_table_contains (state, "state.5.exp_avg"));
    }
}

/* --- layers --- */

static void
layers_are_divided (void)
{
  g_autoptr (GTorchSequential) alone = train_alone (FALSE);
  g_autoptr (GTorchSequential) model = make_model (gpu (self->rank));
  g_autoptr (GTorchOptimizer) optimizer = NULL;
  g_autoptr (GTorchTensor) whole = batch (9, 0, 1, gpu (self->rank));
  g_autoptr (GTorchTensor) near = batch (9, 0, 1, gtorch_device_cpu ());
  g_autoptr (GTorchTensor) output = NULL, expected = NULL;
  g_autoptr (GError) error = NULL;
  gint i;

  /* 7 and 6 of 4 ranks */
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchModule) layer = layer_of (model, i);

      g_assert_true (i == 1 ? gtorch_parallelize_rows (layer, self->group, FALSE, &error)
                            : gtorch_parallelize_columns (layer, self->group, i == 2, &error));
      g_assert_no_error (error);
    }
  optimizer = make_optimizer (GTORCH_MODULE (model), FALSE);
  for (i = 0; i < N_STEPS; i++)
    {
      g_autoptr (GTorchTensor) input = batch (i, 0, 1, gpu (self->rank));

      step (GTORCH_MODULE (model), optimizer, input);
    }
  output = gtorch_module_forward (GTORCH_MODULE (model), whole, &error);
  g_assert_no_error (error);
  expected = gtorch_module_forward (GTORCH_MODULE (alone), near, &error);
  g_assert_no_error (error);
  assert_close (output, expected);
}

/* --- calls of the driver that wait for all GPUs --- */

/* On a driver whose calls wait, as NVIDIA's do (“stall=1”), while other ranks have launched already: kernels
 * are loaded, memory of the host and a former group are given back, at other times in each rank. */
static void
ranks_that_wait_for_the_driver_go_on (void)
{
  GTorchTensor *(*const functions[]) (GTorchTensor *, GError **) = {
    gtorch_tensor_sin,  gtorch_tensor_cos,   gtorch_tensor_exp,  gtorch_tensor_tanh,
    gtorch_tensor_sqrt, gtorch_tensor_floor, gtorch_tensor_log2, gtorch_tensor_erf,
  };
  g_autoptr (GTorchProcessGroup) former = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  former = gtorch_process_group_new ("nccl", self->store, self->rank, self->size, 60, NULL, &error);
  g_assert_no_error (error);
  for (i = 0; i < 3 * G_N_ELEMENTS (functions); i++)
    {
      const guint which = (i + 3 * (guint) self->rank) % G_N_ELEMENTS (functions);
      g_autoptr (GTorchTensor) x =
          numbers (GTORCH_SHAPE (5), (gint) i + self->rank, gpu (self->rank));
      g_autoptr (GTorchTensor) y = NULL;
      GTorchWork *work = gtorch_process_group_all_reduce (i == 0 ? former : self->group, x,
                                                          GTORCH_REDUCE_OP_SUM, &error);

      g_assert_no_error (error);
      if (i == 2 * (guint) self->rank + 1)
        g_clear_object (&former);
      y = functions[which](x, &error);
      g_assert_no_error (error);
      if (i % 5 == (guint) self->rank)
        gtorch_device_empty_cache (gpu (self->rank));
      assert_done (work, NULL);
    }
}

/* --- running them --- */

static const RankCase cases[] = {
  { "threads_exchange", 4, threads_exchange },
  { "numbers_are_multiplied_before", 4, numbers_are_multiplied_before },
  { "a_thread_that_does_not_come_is_named", 3, a_thread_that_does_not_come_is_named },
  { "parts_train", 4, parts_train },
  { "parts_train_in_the_memory_of_the_cpu", 2, parts_train_in_the_memory_of_the_cpu },
  { "replicas_train", 4, replicas_train },
  { "norms_and_overflows_are_those_of_all", 4, norms_and_overflows_are_those_of_all },
  { "parts_are_saved_as_whole_tensors", 4, parts_are_saved_as_whole_tensors },
  { "states_are_spread", 2, states_are_spread },
  { "layers_are_divided", 4, layers_are_divided },
  { "ranks_that_wait_for_the_driver_go_on", 4, ranks_that_wait_for_the_driver_go_on },
};

static void
remove_all (const gchar *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const gchar *name;

  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree gchar *path = g_build_filename (folder, name, NULL);

      g_unlink (path);
    }
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-ranks-XXXXXX", NULL);
  gint status;

  g_test_init (&argc, &argv, NULL);
  alarm (300);
  saved = g_file_new_build_filename (folder, "model.safetensors.index.json", NULL);
  add_cases (cases, G_N_ELEMENTS (cases));
  status = g_test_run ();
  remove_all (folder);
  g_object_unref (saved);
  return status;
}
