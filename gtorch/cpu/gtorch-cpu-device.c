/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The CPU backend. */

#include "config.h"

#include <cblas.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/gtorch-cpu-isa.h"
#include "cpu/gtorch-cpu-threads.h"
#include "device/gtorch-device-private.h"
#include "stream/gtorch-stream-private.h"
#include "cpu/gtorch-cpu-device.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-dlpack-private.h"

typedef GTorchDevice GTorchCpuDevice;
typedef GTorchDeviceClass GTorchCpuDeviceClass;

GType gtorch_cpu_device_get_type (void);
G_DEFINE_TYPE (GTorchCpuDevice, gtorch_cpu_device, GTORCH_TYPE_DEVICE)

/* The processor's name. */
static const gchar *
find_name (void)
{
  static gchar *name;

  if (g_once_init_enter (&name))
    {
      g_autofree gchar *text = NULL;
      gchar *found = NULL;

      if (g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL))
        {
          const gchar *at = strstr (text, "model name");

          if (at != NULL && (at = strchr (at, ':')) != NULL)
            found = g_strstrip (g_strndup (at + 1, strcspn (at + 1, "\n")));
        }
      g_once_init_leave (&name, found != NULL ? found : g_strdup ("CPU"));
    }
  return name;
}

static const GTorchDeviceInfo *
gtorch_cpu_device_get_info (GTorchDevice *device)
{
  static GTorchDeviceInfo info = { .threads_per_multiprocessor = 1,
                                   .warp_size = 1,
                                   .integrated = TRUE };
  static gsize once;

  if (g_once_init_enter (&once))
    {
      info.name = find_name ();
      info.n_multiprocessors = g_get_num_processors ();
#ifdef _SC_LEVEL2_CACHE_SIZE
      info.l2_size = MAX (sysconf (_SC_LEVEL2_CACHE_SIZE), 0);
#endif
      g_once_init_leave (&once, 1);
    }
  return &info;
}

static void
gtorch_cpu_device_class_init (GTorchCpuDeviceClass *klass)
{
  GTorchDeviceClass *device_class = (GTorchDeviceClass *) klass;

  device_class->get_info = gtorch_cpu_device_get_info;
  device_class->alloc = gtorch_cpu_alloc;
  device_class->free = gtorch_cpu_free;
  device_class->get_memory_info = gtorch_cpu_memory_info;
  device_class->sync_stats = gtorch_cpu_sync_stats;
  device_class->empty_cache = gtorch_cpu_empty_cache;
  device_class->take_sample = gtorch_cpu_take_sample;
  device_class->shares = &gtorch_cpu_shares;
  device_class->launch = gtorch_cpu_launch;
  device_class->new_stream = gtorch_cpu_stream_new;
  device_class->get_priorities = gtorch_cpu_stream_get_priorities;
  device_class->record_stream = gtorch_cpu_stream_record;
}

static void
gtorch_cpu_device_init (GTorchCpuDevice *self)
{
  gtorch_device_set_backend (self, &gtorch_backend_cpu, 0, NULL);
  gtorch_cpu_threads_set_wait_policy (&self->wait_policy);
}

static guint
cpu_count (const gchar **reason)
{
  return 1;
}

static GTorchDevice *
cpu_get (guint index, GError **error)
{
  static GTorchDevice *cpu;

  if (g_once_init_enter (&cpu))
    g_once_init_leave (&cpu, g_object_new (gtorch_cpu_device_get_type (), NULL));
  return cpu;
}

/* --- facts --- */

static gchar *
dup_levels (void)
{
  return g_strdup ("baseline"
#ifdef GTORCH_HAVE_ISA_V3
                   " v3"
#endif
#ifdef GTORCH_HAVE_ISA_V4
                   " v4"
#endif
  );
}

static gchar *
dup_level (void)
{
  static const gchar *const names[] = { "baseline", "v3", "v4" };

  return g_strdup (names[gtorch_cpu_isa ()]);
}

static gchar *
dup_blas (void)
{
#ifdef HAVE_OPENBLAS
  return g_strstrip (g_strdup (openblas_get_config ()));
#else
  return g_strdup (BLAS_NAME);
#endif
}

static const GTorchFact cpu_facts[] = {
  { "cpu-levels", NULL, dup_levels },
  { "cpu-level", NULL, dup_level },
  { "blas", NULL, dup_blas },
  { NULL },
};

const GTorchBackend gtorch_backend_cpu = {
  .prefix = "cpu",
  .type = GTORCH_DEVICE_TYPE_CPU,
  .runs = gtorch_cpu_runs,
  .queries = gtorch_cpu_queries,
  .in_caller = TRUE,
  .autocast_dtype = GTORCH_DTYPE_BFLOAT16,
  .autocast_like = GTORCH_DEVICE_TYPE_CPU,
  .dlpack_type = GTORCH_DL_CPU,
  .facts = cpu_facts,
  .count = cpu_count,
  .get = cpu_get,
};
