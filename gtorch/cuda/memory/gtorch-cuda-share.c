/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory of a GPU for other processes.
 *
 * An arena of pages exports the pages on which the block lies, each as a file descriptor; the other
 * process maps them one behind the other. An arena of segments exports the handle of the segment
 * (cuIpcGetMemHandle ()). Either way the other process sees all of these pages or of the segment, and uses
 * its block only.
 *
 * The same pages or segments are opened once in a process, however many tensors they have: what identifies
 * them is the process that has made them and its handles, which it does not use for anything else as long
 * as one of its blocks there is in use, and that is for longer than they are open here. */

#include "config.h"

#include "cuda/memory/gtorch-cuda-share-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <unistd.h>

#include "base/gtorch-fork-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/memory/gtorch-cuda-adopt-private.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"

/* The description: whether the memory consists of pages, the size of each page, the identity, and where the
 * first element is. The identity of pages is that of the process and the numbers of the handles, that of a
 * segment is its handle. */
#define FORMAT "(batayt)"

/* Memory of another process that is open here. */
typedef struct
{
  GBytes *identity;
  GTorchCudaDevice *device;
  gboolean is_pages;
  CUdeviceptr address;
  gsize size;
  guint n_users;
} Opened;

/* A tensor's share in it. */
typedef struct
{
  Opened *opened;
  GDestroyNotify free_func;
  gpointer free_data;
} User;

static GMutex lock; /* of what is open, also while the driver opens it */
GTORCH_FORK_LOCK (lock);
static GHashTable *all_opened; /* identity → Opened */

/* --- for other processes --- */

static gboolean
check_exportable (GTorchStorage *storage, GError **error)
{
  GTorchCudaArena *arena;
  const gchar *why = NULL;

  if (storage->free_func != NULL)
    why = N_ ("of another library or of another process: copy the tensor");
  else
    {
      arena = ((GTorchCudaBlock *) storage)->arena;
      if (gtorch_cuda_arena_get_source (arena) != NULL)
        why = N_ ("of a source of the program: copy the tensor to memory of the library");
      else if (strcmp (gtorch_cuda_arena_get_function (arena), "cuMemAllocAsync") == 0)
        why = N_ ("of the driver's pool, which other processes cannot open");
    }
  if (why == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("share: the memory on %s is %s"),
               gtorch_device_name (storage->device), _ (why));
  return FALSE;
}

static guint8 *
own_identity (void)
{
  static guint8 identity[16];
  static gsize done;
  guint i;

  if (g_once_init_enter (&done))
    {
      for (i = 0; i < sizeof identity; i++)
        identity[i] = (guint8) g_random_int ();
      g_once_init_leave (&done, 1);
    }
  return identity;
}

static GVariant *
describe_pages (GTorchCudaBlock *block, GArray *fds, GError **error)
{
  g_autoptr (GArray) pages = g_array_new (FALSE, FALSE, sizeof (GTorchCudaPage));
  g_autoptr (GByteArray) identity = g_byte_array_new ();
  g_autoptr (GArray) sizes = g_array_new (FALSE, FALSE, sizeof (guint64));
  gsize start;
  guint i;

  g_mutex_lock (gtorch_cuda_arena_get_lock (block->arena));
  start = gtorch_cuda_arena_find_pages (block->arena, block->offset, block->size, pages);
  g_mutex_unlock (gtorch_cuda_arena_get_lock (block->arena));
  g_byte_array_append (identity, own_identity (), 16);
  for (i = 0; i < pages->len; i++)
    {
      const GTorchCudaPage *page = &g_array_index (pages, GTorchCudaPage, i);
      const guint64 size = page->size;
      int fd = -1;

      if (!gtorch_cuda_check (gtorch_cuda.cuMemExportToShareableHandle (
                                  &fd, page->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                              "share: cuMemExportToShareableHandle", error))
        return NULL;
      g_array_append_val (fds, fd);
      g_array_append_val (sizes, size);
      g_byte_array_append (identity, (const guint8 *) &page->handle, sizeof page->handle);
    }
  return g_variant_new ("(b@at@ayt)", TRUE,
                        g_variant_new_fixed_array (G_VARIANT_TYPE_UINT64, sizes->data, sizes->len,
                                                   sizeof (guint64)),
                        g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, identity->data,
                                                   identity->len, 1),
                        (guint64) (block->offset - start));
}

static GVariant *
describe_segment (GTorchCudaBlock *block, GError **error)
{
  CUdeviceptr segment;
  CUipcMemHandle handle;

  g_mutex_lock (gtorch_cuda_arena_get_lock (block->arena));
  segment = gtorch_cuda_arena_find_segment (block);
  g_mutex_unlock (gtorch_cuda_arena_get_lock (block->arena));
  if (!gtorch_cuda_check (gtorch_cuda.cuIpcGetMemHandle (&handle, segment),
                          "share: cuIpcGetMemHandle", error))
    return NULL;
  return g_variant_new ("(b@at@ayt)", FALSE, g_variant_new_array (G_VARIANT_TYPE_UINT64, NULL, 0),
                        g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, &handle, sizeof handle, 1),
                        (guint64) ((CUdeviceptr) (guintptr) block->storage.data - segment));
}

static GVariant *
describe (GTorchDevice *device, GTorchStorage *storage, GArray *fds, GError **error)
{
  GTorchCudaBlock *block = (GTorchCudaBlock *) storage;
  GTORCH_CUDA_APART;

  if (!check_exportable (storage, error)
      || !gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), error))
    return NULL;
  return gtorch_cuda_arena_has_pages (block->arena) ? describe_pages (block, fds, error)
                                                    : describe_segment (block, error);
}

/* --- of other processes --- */

static void
close_memory (Opened *opened, gsize mapped)
{
  if (!opened->is_pages)
    {
      gtorch_cuda.cuIpcCloseMemHandle (opened->address);
      return;
    }
  if (mapped > 0 && gtorch_cuda.cuMemUnmap (opened->address, mapped) != CUDA_SUCCESS)
    return; /* what stays mapped keeps its addresses */
  gtorch_cuda.cuMemAddressFree (opened->address, opened->size);
}

static CUresult
allow_all (Opened *opened, CUdeviceptr address, gsize size)
{
  CUmemAccessDesc access[1 + GTORCH_CUDA_MAX_DEVICES] = {
    { { CU_MEM_LOCATION_TYPE_DEVICE, opened->device->handle }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
  };
  guint readers = __atomic_load_n (&opened->device->readers, __ATOMIC_SEQ_CST), n = 1;

  for (; readers != 0; readers &= readers - 1, n++)
    {
      access[n] = access[0];
      access[n].location.id = __builtin_ctz (readers);
    }
  return gtorch_cuda.cuMemSetAccess (address, size, access, n);
}

/* Maps one page at the offset, and lets go of its handle: the mapping keeps the memory. */
static gboolean
map_page (Opened *opened, gsize offset, gsize size, gint fd, GError **error)
{
  CUmemGenericAllocationHandle handle;
  CUresult result;

  if (!gtorch_cuda_check (
          gtorch_cuda.cuMemImportFromShareableHandle (&handle, (void *) (gintptr) fd,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          "share: cuMemImportFromShareableHandle", error))
    return FALSE;
  result = gtorch_cuda.cuMemMap (opened->address + offset, size, 0, handle, 0);
  gtorch_cuda.cuMemRelease (handle);
  return gtorch_cuda_check (result, "share: cuMemMap", error);
}

static gboolean
open_pages (Opened *opened, const guint64 *sizes, const gint *fds, gsize n, GError **error)
{
  gsize done = 0, i;

  for (i = 0; i < n; i++)
    opened->size += sizes[i];
  if (!gtorch_cuda_check (gtorch_cuda.cuMemAddressReserve (&opened->address, opened->size,
                                                           GTORCH_CUDA_PAGE, 0, 0),
                          "share: cuMemAddressReserve", error))
    return FALSE;
  for (i = 0; i < n; done += sizes[i], i++)
    if (!map_page (opened, done, sizes[i], fds[i], error))
      break;
  if (i == n
      && gtorch_cuda_check (allow_all (opened, opened->address, opened->size),
                            "share: cuMemSetAccess", error))
    return TRUE;
  close_memory (opened, done);
  return FALSE;
}

static gboolean
open_segment (Opened *opened, GError **error)
{
  CUipcMemHandle handle;
  CUdeviceptr start;

  memcpy (&handle, g_bytes_get_data (opened->identity, NULL), sizeof handle);
  if (!gtorch_cuda_check (gtorch_cuda.cuIpcOpenMemHandle (&opened->address, handle,
                                                          CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                          "share: cuIpcOpenMemHandle", error))
    return FALSE;
  if (gtorch_cuda_check (gtorch_cuda.cuMemGetAddressRange (&start, &opened->size, opened->address),
                         "share: cuMemGetAddressRange", error))
    return TRUE;
  close_memory (opened, 0);
  return FALSE;
}

static void
opened_free (Opened *opened)
{
  g_bytes_unref (opened->identity);
  g_free (opened);
}

/* Finds the memory or opens it; the lock is held. */
static Opened *
get_opened (GTorchCudaDevice *device, GBytes *identity, gboolean is_pages, const guint64 *sizes,
            const gint *fds, gsize n, GError **error)
{
  Opened *opened;

  if (all_opened == NULL)
    all_opened = g_hash_table_new (g_bytes_hash, g_bytes_equal);
  opened = g_hash_table_lookup (all_opened, identity);
  if (opened == NULL)
    {
      opened = g_new0 (Opened, 1);
      opened->identity = g_bytes_ref (identity);
      opened->device = device;
      opened->is_pages = is_pages;
      if (is_pages ? !open_pages (opened, sizes, fds, n, error) : !open_segment (opened, error))
        {
          opened_free (opened);
          return NULL;
        }
      g_hash_table_insert (all_opened, opened->identity, opened);
    }
  opened->n_users++;
  return opened;
}

static void
drop_opened (Opened *opened)
{
  GTORCH_CUDA_APART;

  gtorch_cuda_device_activate (opened->device, NULL);
  g_mutex_lock (&lock);
  if (--opened->n_users == 0)
    {
      g_hash_table_remove (all_opened, opened->identity);
      close_memory (opened, opened->size);
      opened_free (opened);
    }
  g_mutex_unlock (&lock);
}

static void
user_free (gpointer data)
{
  User *user = data;

  drop_opened (
      user->opened); /* before the other process learns of it, and uses the memory otherwise */
  user->free_func (user->free_data);
  g_free (user);
}

static void
set_not_described (gsize n_fds, gsize n_bytes, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("share: the handle does not describe memory of %zu bytes with %zu file "
                  "descriptors"),
               n_bytes, n_fds);
}

/* Checks what another process has written, but for the place in the memory. */
static gboolean
check_description (GTorchCudaDevice *device, GVariant *description, gsize n_fds, GBytes **identity,
                   GVariant **sizes, guint64 *offset)
{
  g_autoptr (GVariant) bytes = NULL;
  gboolean is_pages, is_right;
  const guint64 *values;
  guint64 all = 0;
  gsize n, n_identity, i;
  gconstpointer data;

  g_variant_get (description, "(b@at@ayt)", &is_pages, sizes, &bytes, offset);
  data = g_variant_get_fixed_array (bytes, &n_identity, 1);
  values = g_variant_get_fixed_array (*sizes, &n, sizeof (guint64));
  is_right = is_pages ? n > 0 && n == n_fds && n_identity == 16 + 8 * n
                      : n == 0 && n_fds == 0 && n_identity == sizeof (CUipcMemHandle);
  for (i = 0; is_right && i < n; i++)
    is_right = values[i] > 0 && values[i] % GTORCH_CUDA_PAGE == 0
               && !__builtin_add_overflow (all, values[i], &all) && all <= device->total_memory;
  if (is_right)
    *identity = g_bytes_new (data, n_identity);
  return is_right;
}

static GTorchStorage *
open_description (GTorchDevice *device, GVariant *description, const gint *fds, gsize n_fds,
                  gsize n_bytes, GDestroyNotify free_func, gpointer free_data, GError **error)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);
  g_autoptr (GBytes) identity = NULL;
  g_autoptr (GVariant) sizes = NULL;
  GTorchStorage *storage;
  Opened *opened;
  guint64 offset;
  User *user;
  gsize n;
  GTORCH_CUDA_APART;

  if (!g_variant_is_of_type (description, G_VARIANT_TYPE (FORMAT)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("share: the handle is not one of a tensor on a GPU"));
      return NULL;
    }
  if (!check_description (self, description, n_fds, &identity, &sizes, &offset))
    {
      set_not_described (n_fds, n_bytes, error);
      return NULL;
    }
  if (!gtorch_cuda_device_activate (self, error))
    return NULL;
  n = g_variant_n_children (sizes);
  g_mutex_lock (&lock);
  opened =
      get_opened (self, identity, n > 0, g_variant_get_fixed_array (sizes, &n, 8), fds, n, error);
  g_mutex_unlock (&lock);
  if (opened == NULL)
    return NULL;
  if (offset > opened->size || n_bytes > opened->size - offset)
    {
      set_not_described (n_fds, n_bytes, error);
      drop_opened (opened);
      return NULL;
    }
  user = g_new0 (User, 1);
  user->opened = opened;
  user->free_func = free_func;
  user->free_data = free_data;
  storage = gtorch_cuda_adopt (device, (gpointer) (guintptr) (opened->address + offset), n_bytes,
                               FALSE, user_free, user, error);
  if (storage == NULL)
    {
      drop_opened (opened);
      g_free (user);
    }
  return storage;
}

CUresult
gtorch_cuda_shares_allow (GTorchCudaDevice *owner, GTorchCudaDevice *reader)
{
  const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, reader->handle },
                                   CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  CUresult result = CUDA_SUCCESS;
  GHashTableIter iter;
  gpointer value;

  g_mutex_lock (&lock);
  if (all_opened != NULL)
    {
      g_hash_table_iter_init (&iter, all_opened);
      while (result == CUDA_SUCCESS && g_hash_table_iter_next (&iter, NULL, &value))
        {
          Opened *opened = value;

          if (opened->device == owner && opened->is_pages)
            result = gtorch_cuda.cuMemSetAccess (opened->address, opened->size, &access, 1);
        }
    }
  g_mutex_unlock (&lock);
  return result;
}

const struct _GTorchShareBackend gtorch_cuda_shares = {
  .describe = describe,
  .open = open_description,
};
