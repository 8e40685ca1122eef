/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Groups of processes and stores, to pass to functions: such as have nothing to wait for. */

#include "config.h"

#include "refuse.h"

gpointer
refuse_make_distributed (const gchar *type)
{
  /* a store without a server, and a group without a backend, have errors at once */
  if (g_str_equal (type, "GTorchStore") || g_str_equal (type, "GTorchTcpStore"))
    return g_object_new (GTORCH_TYPE_TCP_STORE, NULL);
  if (g_str_equal (type, "GTorchFileStore"))
    return g_object_new (GTORCH_TYPE_FILE_STORE, NULL);
  if (g_str_equal (type, "GTorchPrefixStore"))
    return g_object_new (GTORCH_TYPE_PREFIX_STORE, "prefix", "part", NULL);
  if (g_str_equal (type, "GTorchHashStore"))
    return gtorch_hash_store_new ();
  if (g_str_equal (type, "GTorchProcessGroup"))
    return g_object_new (GTORCH_TYPE_PROCESS_GROUP, NULL);
  if (g_str_equal (type, "GTorchDistributedModule"))
    return g_object_new (GTORCH_TYPE_DISTRIBUTED_MODULE, NULL);
  if (g_str_equal (type, "GTorchDataParallel"))
    return g_object_new (GTORCH_TYPE_DATA_PARALLEL, NULL);
  if (g_str_equal (type, "GTorchGradBucket"))
    return g_object_new (GTORCH_TYPE_GRAD_BUCKET, NULL);
  if (g_str_equal (type, "GTorchPowerSGD"))
    return gtorch_power_sgd_new (1, 0, NULL);
  if (g_str_equal (type, "GTorchShardedOptimizer"))
    return g_object_new (GTORCH_TYPE_SHARDED_OPTIMIZER, NULL);
  if (g_str_equal (type, "GTorchModuleShards"))
    return g_object_new (GTORCH_TYPE_MODULE_SHARDS, NULL);
  if (g_str_equal (type, "GTorchDeviceMesh"))
    return g_object_new (GTORCH_TYPE_DEVICE_MESH, NULL);
  if (g_str_equal (type, "GTorchWork"))
    return g_object_new (GTORCH_TYPE_WORK, NULL);
  return NULL;
}
