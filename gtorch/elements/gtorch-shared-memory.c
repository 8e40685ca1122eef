/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory that two processes see. One makes it, writes tensors there and passes the file descriptor
 * on; the other makes tensors of the same memory. A page before the memory has one word, whether
 * the memory is lent: the maker sets it before it tells the other process, and the other process
 * clears it once none of its tensors uses the memory, so that the maker may write there anew
 * without having been told.
 *
 * The file is sealed against changes of its size: otherwise the other process would die of a SIGBUS
 * where the maker has made it shorter. After a fork the child has the tensors of its parent, too:
 * it never clears the word, and the parent does not clear those that were set when it forked, as
 * the child still reads the memory.
 *
 * Memory of single storages (GTorchTensorHandle) is never written to for something else: the word has no
 * meaning there. Both processes keep the file descriptor, and a process that gets the same file twice
 * maps it once. */

#include "config.h"

#include "elements/gtorch-shared-memory-private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gtorch-fork-private.h"
#include "device/gtorch-device-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "memory/gtorch-share-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchSharedMemory:
 *
 * Memory of the host that two processes share.
 *
 * One process makes it, writes tensors to it and sends the file descriptor over a socket; the other
 * makes tensors of the same memory, which nobody copies. It is what worker processes of data
 * loaders send batches by.
 *
 * ```c
 * g_autoptr (GTorchSharedMemory) memory = gtorch_shared_memory_new (1024, &error);
 * g_autoptr (GTorchTensor) batch = gtorch_shared_memory_make_tensor (
 *     memory, 0, GTORCH_DTYPE_FLOAT32, GTORCH_SHAPE (16, 16), &error);
 * ```
 *
 * Since: 0.1
 */

#define HEAD  4096 /* bytes before the memory, so that it begins with a page */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

struct _GTorchSharedMemory
{
  GObject parent_instance;
  guint8 *map; /* NULL for a bare object, which g_object_new () gives */
  gsize n_bytes;
  gint fd;             /* -1 if another process has made the memory */
  gint users;          /* tensors and holds of this process; atomic */
  guint era;           /* the forks of this process when the first of them came */
  gboolean owned;      /* this process has made the memory */
  gboolean is_lasting; /* of one storage */
};

static guint era; /* atomic */

/* Lasting memory of this process by the number of its file. */
typedef struct
{
  guint64 device, number;
  GWeakRef memory;
} File;

static GMutex lock; /* protects files */
GTORCH_FORK_LOCK (lock);
static GHashTable *files;

G_DEFINE_TYPE (GTorchSharedMemory, gtorch_shared_memory, G_TYPE_OBJECT)

static void
begin_era (void)
{
  g_atomic_int_inc (&era);
}

static void __attribute__ ((constructor)) gtorch_shared_memory_watch_forks (void)
{
  pthread_atfork (begin_era, NULL, NULL);
}

static gint *
lent_word (GTorchSharedMemory *self)
{
  return (gint *) self->map;
}

/* --- lasting memory --- */

static guint
file_hash (gconstpointer file)
{
  return g_int64_hash (&((const File *) file)->number);
}

static gboolean
file_equal (gconstpointer a, gconstpointer b)
{
  return ((const File *) a)->device == ((const File *) b)->device
         && ((const File *) a)->number == ((const File *) b)->number;
}

static void
file_free (gpointer data)
{
  File *file = data;

  g_weak_ref_clear (&file->memory);
  g_free (file);
}

/* Returns the memory of the file that is there already, or enters @self. Takes the reference. */
static GTorchSharedMemory *
enter_file (GTorchSharedMemory *self)
{
  GTorchSharedMemory *found = NULL;
  struct stat info;
  File *file;

  if (fstat (self->fd, &info) != 0)
    return self;
  g_mutex_lock (&lock);
  if (files == NULL)
    files = g_hash_table_new_full (file_hash, file_equal, file_free, NULL);
  file = g_hash_table_lookup (files, &(File){ .device = info.st_dev, .number = info.st_ino });
  if (file != NULL)
    found = g_weak_ref_get (&file->memory);
  if (found == NULL)
    {
      file = g_new0 (File, 1);
      file->device = info.st_dev;
      file->number = info.st_ino;
      g_weak_ref_init (&file->memory, self);
      g_hash_table_replace (files, file, file);
      found = g_object_ref (self);
    }
  g_mutex_unlock (&lock);
  g_object_unref (self);
  return found;
}

static void
forget_file (GTorchSharedMemory *self)
{
  GTorchSharedMemory *other = NULL;
  struct stat info;
  File *file;

  if (fstat (self->fd, &info) != 0)
    return;
  g_mutex_lock (&lock);
  file = files == NULL
             ? NULL
             : g_hash_table_lookup (files, &(File){ .device = info.st_dev, .number = info.st_ino });
  other = file != NULL ? g_weak_ref_get (&file->memory) : NULL;
  if (file != NULL && other == NULL) /* else the file was opened again meanwhile */
    g_hash_table_remove (files, file);
  g_mutex_unlock (&lock);
  g_clear_object (&other);
}

static void
gtorch_shared_memory_finalize (GObject *object)
{
  GTorchSharedMemory *self = GTORCH_SHARED_MEMORY (object);

  if (self->is_lasting && self->fd >= 0)
    forget_file (self);
  if (self->map != NULL)
    munmap (self->map, HEAD + self->n_bytes);
  if (self->fd >= 0)
    close (self->fd);
  G_OBJECT_CLASS (gtorch_shared_memory_parent_class)->finalize (object);
}

static void
gtorch_shared_memory_class_init (GTorchSharedMemoryClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_shared_memory_finalize;
}

static void
gtorch_shared_memory_init (GTorchSharedMemory *self)
{
  self->fd = -1;
}

static GTorchSharedMemory *
fail (GTorchSharedMemory *self, const gchar *call, GError **error)
{
  g_set_error (error, GTORCH_ERROR,
               errno == ENOMEM || errno == ENOSPC ? GTORCH_ERROR_OUT_OF_MEMORY
                                                  : GTORCH_ERROR_FAILED,
               _ ("shared_memory: %s: %s"), call, g_strerror (errno));
  g_object_unref (self);
  return NULL;
}

static gboolean
map (GTorchSharedMemory *self, gint fd)
{
  gpointer found = mmap (NULL, HEAD + self->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

  if (found == MAP_FAILED)
    return FALSE;
  self->map = found;
  return TRUE;
}

/* The system would give a file in memory all that there is, and end programs for more. */
static gboolean
check_available (gsize n_bytes, GError **error)
{
  guint64 available, total;

  if (!gtorch_device_get_memory_info (gtorch_device_cpu (), &available, &total, NULL)
      || n_bytes <= available)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
               _ ("shared_memory: %zu bytes were asked for, and %" PRIu64 " are available"),
               n_bytes, available);
  return FALSE;
}

/**
 * gtorch_shared_memory_new:
 * @n_bytes: the size
 * @error: return location for an error
 *
 * Makes memory for tensors that another process is to have, too.
 *
 * The memory has no name in a file system, and is gone when no process has it any more.
 *
 * Returns: (transfer full): the memory, of which every byte is 0, or %NULL with
 *   %GTORCH_ERROR_INVALID for no bytes or more than a file can have, and
 *   %GTORCH_ERROR_OUT_OF_MEMORY or %GTORCH_ERROR_FAILED from the system
 *
 * Since: 0.1
 */
GTorchSharedMemory *
gtorch_shared_memory_new (gsize n_bytes, GError **error)
{
  GTorchSharedMemory *self;

  if (n_bytes == 0 || n_bytes > G_MAXINT64 - HEAD)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("shared_memory: the size is %zu, not from 1 to %" PRId64), n_bytes,
                   G_MAXINT64 - HEAD);
      return NULL;
    }
  if (!check_available (n_bytes, error))
    return NULL;
  self = g_object_new (GTORCH_TYPE_SHARED_MEMORY, NULL);
  self->n_bytes = n_bytes;
  self->owned = TRUE;
  self->fd = memfd_create ("gtorch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (self->fd < 0)
    return fail (self, "memfd_create", error);
  /* Memory that is missing is told here, not by a signal when it is used. */
  if (fallocate (self->fd, 0, 0, (off_t) (HEAD + n_bytes)) != 0)
    return fail (self, "fallocate", error);
  if (fcntl (self->fd, F_ADD_SEALS, SEALS) != 0)
    return fail (self, "F_ADD_SEALS", error);
  if (!map (self, self->fd))
    return fail (self, "mmap", error);
  return self;
}

/**
 * gtorch_shared_memory_new_from_fd:
 * @fd: the file descriptor of memory that another process has made by [ctor@SharedMemory.new]; remains the
 *   caller's and may be closed afterwards
 * @error: return location for an error
 *
 * Takes memory of another process.
 *
 * Returns: (transfer full): the memory, or %NULL with %GTORCH_ERROR_FORMAT if @fd is none or not such a file,
 *   and %GTORCH_ERROR_OUT_OF_MEMORY or %GTORCH_ERROR_FAILED from the system
 *
 * Since: 0.1
 */
GTorchSharedMemory *
gtorch_shared_memory_new_from_fd (gint fd, GError **error)
{
  GTorchSharedMemory *self;
  struct stat info;
  gint seals = fcntl (fd, F_GET_SEALS);

  if (seals < 0 || (seals & SEALS) != SEALS || fstat (fd, &info) != 0 || info.st_size <= HEAD)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("shared_memory: file descriptor %d is not that of shared memory, whose size "
                      "is fixed"),
                   fd);
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_SHARED_MEMORY, NULL);
  self->n_bytes = (gsize) info.st_size - HEAD;
  return map (self, fd) ? self : fail (self, "mmap", error);
}

/**
 * gtorch_shared_memory_get_fd:
 * @self: shared memory
 *
 * Gets the file descriptor for the other process. It belongs to @self.
 *
 * Returns: the file descriptor, or -1 if another process has made the memory
 *
 * Since: 0.1
 */
gint
gtorch_shared_memory_get_fd (GTorchSharedMemory *self)
{
  g_return_val_if_fail (GTORCH_IS_SHARED_MEMORY (self), -1);
  return self->fd;
}

/**
 * gtorch_shared_memory_get_n_bytes:
 * @self: shared memory
 *
 * Gets the size.
 *
 * Returns: the number of bytes for tensors
 *
 * Since: 0.1
 */
gsize
gtorch_shared_memory_get_n_bytes (GTorchSharedMemory *self)
{
  g_return_val_if_fail (GTORCH_IS_SHARED_MEMORY (self), 0);
  return self->n_bytes;
}

/**
 * gtorch_shared_memory_get_address:
 * @self: shared memory
 *
 * Gets the address in this process, by which [method@Tensor.get_data_ptr] of a tensor tells its offset.
 *
 * Returns: the address of the first byte
 *
 * Since: 0.1
 */
gsize
gtorch_shared_memory_get_address (GTorchSharedMemory *self)
{
  g_return_val_if_fail (GTORCH_IS_SHARED_MEMORY (self), 0);
  return self->map == NULL ? 0 : (gsize) (self->map + HEAD);
}

/**
 * gtorch_shared_memory_is_used:
 * @self: shared memory
 *
 * Tells whether tensors or holds of this process use the memory or, after
 * [method@SharedMemory.lend], those of the other process do.
 *
 * Returns: %TRUE if the memory must not be written to for something else
 *
 * Since: 0.1
 */
gboolean
gtorch_shared_memory_is_used (GTorchSharedMemory *self)
{
  g_return_val_if_fail (GTORCH_IS_SHARED_MEMORY (self), FALSE);
  return self->map != NULL
         && (g_atomic_int_get (&self->users) != 0 || g_atomic_int_get (lent_word (self)) != 0);
}

/**
 * gtorch_shared_memory_lend:
 * @self: shared memory
 *
 * Notes that the other process uses the memory, until all its tensors there and holds are gone.
 *
 * The process that made the memory calls this before it tells the other one of tensors.
 *
 * Since: 0.1
 */
void
gtorch_shared_memory_lend (GTorchSharedMemory *self)
{
  g_return_if_fail (GTORCH_IS_SHARED_MEMORY (self));
  if (self->map != NULL)
    g_atomic_int_set (lent_word (self), 1);
}

/**
 * gtorch_shared_memory_hold:
 * @self: shared memory
 *
 * Keeps the memory used, as a tensor there does, until [method@SharedMemory.release] is called.
 *
 * With a hold, the first of several tensors may be gone before the next is made.
 *
 * Since: 0.1
 */
void
gtorch_shared_memory_hold (GTorchSharedMemory *self)
{
  g_return_if_fail (GTORCH_IS_SHARED_MEMORY (self));
  if (g_atomic_int_add (&self->users, 1) == 0)
    self->era = (guint) g_atomic_int_get (&era);
}

/**
 * gtorch_shared_memory_release:
 * @self: shared memory
 *
 * Ends what [method@SharedMemory.hold] began. The last release, or the end of the last tensor, lets
 * the process that made the memory write there again.
 *
 * Since: 0.1
 */
void
gtorch_shared_memory_release (GTorchSharedMemory *self)
{
  g_return_if_fail (GTORCH_IS_SHARED_MEMORY (self));
  g_return_if_fail (g_atomic_int_get (&self->users) > 0);
  if (g_atomic_int_dec_and_test (&self->users) && !self->owned && self->map != NULL
      && self->era == (guint) g_atomic_int_get (&era))
    g_atomic_int_set (lent_word (self), 0);
}

static void
free_shared_storage (GTorchStorage *storage)
{
  GTorchSharedMemory *self = storage->free_data;

  gtorch_shared_memory_release (self);
  g_object_unref (self);
}

static gboolean
check_bools (const guint8 *data, gsize n_bytes, GError **error)
{
  gsize i;

  for (i = 0; i < n_bytes; i++)
    if (data[i] > 1)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                     _ ("shared_memory: byte %u at %zu is not a bool, which is 0 or 1"), data[i],
                     i);
        return FALSE;
      }
  return TRUE;
}

/**
 * gtorch_shared_memory_make_tensor:
 * @self: shared memory
 * @offset: where the first element is, in bytes; a multiple of the size of an element
 * @dtype: the dtype of the elements
 * @shape: (array length=n_dims) (nullable): the shape of the tensor
 * @n_dims: the number of dimensions; 0 for a single number
 * @error: return location for an error
 *
 * Makes a tensor on the CPU that aliases a part of the memory, in C order, and keeps the memory
 * alive. It may be written to; both processes see that.
 *
 * Returns: (transfer full): the tensor, or %NULL with %GTORCH_ERROR_SHAPE or %GTORCH_ERROR_DTYPE
 *   for a wrong shape or dtype, %GTORCH_ERROR_INDEX if the memory does not reach as far,
 *   %GTORCH_ERROR_INVALID if @offset is not aligned, and %GTORCH_ERROR_FORMAT if a bool is neither
 *   0 nor 1
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_shared_memory_make_tensor (GTorchSharedMemory *self, gsize offset, GTorchDType dtype,
                                  const gint64 *shape, gsize n_dims, GError **error)
{
  GTorchStorage *storage;
  GTorchImpl *impl;
  gint64 numel;
  gsize length;

  g_return_val_if_fail (GTORCH_IS_SHARED_MEMORY (self), NULL);

  if (!gtorch_tensor_check_target ("shared_memory", dtype, shape, n_dims, &numel, error))
    return NULL;
  length = (gsize) numel * gtorch_dtype_size (dtype);
  if (offset > self->n_bytes || length > self->n_bytes - offset)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("shared_memory: %zu bytes at %zu are out of range for %zu"), length, offset,
                   self->n_bytes);
      return NULL;
    }
  if (length == 0)
    return gtorch_tensor_wrap (
        gtorch_impl_new (gtorch_device_cpu (), dtype, shape, (guint) n_dims, error));
  if (offset % gtorch_dtype_infos[dtype].alignment != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("shared_memory: %zu is no multiple of the size of %s"), offset,
                   gtorch_dtype_get_name (dtype));
      return NULL;
    }
  if (dtype == GTORCH_DTYPE_BOOL && !check_bools (self->map + HEAD + offset, length, error))
    return NULL;
  gtorch_shared_memory_hold (self);
  storage = gtorch_storage_new_foreign (gtorch_device_cpu (), self->map + HEAD + offset, length,
                                        free_shared_storage, g_object_ref (self));
  impl = gtorch_impl_new_strided (storage, dtype, 0, shape, NULL, (guint) n_dims);
  gtorch_storage_unref (storage);
  return gtorch_tensor_wrap (impl);
}

/* --- memory of one storage --- */

GTorchSharedMemory *
gtorch_shared_memory_new_lasting (gsize n_bytes, GError **error)
{
  GTorchSharedMemory *self = gtorch_shared_memory_new (n_bytes, error);

  if (self == NULL)
    return NULL;
  self->is_lasting = TRUE;
  return enter_file (self);
}

GTorchSharedMemory *
gtorch_shared_memory_open_lasting (gint fd, GError **error)
{
  GTorchSharedMemory *self = gtorch_shared_memory_new_from_fd (fd, error);

  if (self == NULL)
    return NULL;
  self->fd = fcntl (fd, F_DUPFD_CLOEXEC, 0);
  if (self->fd < 0)
    return fail (self, "F_DUPFD_CLOEXEC", error);
  self->is_lasting = TRUE;
  return enter_file (self);
}

gboolean
gtorch_shared_memory_is_lasting (GTorchSharedMemory *self)
{
  return self->is_lasting;
}

GTorchStorage *
gtorch_shared_memory_make_storage (GTorchSharedMemory *self, gsize n_bytes)
{
  gtorch_shared_memory_hold (self);
  return gtorch_storage_new_foreign (gtorch_device_cpu (), self->map + HEAD, n_bytes,
                                     free_shared_storage, g_object_ref (self));
}

GTorchSharedMemory *
gtorch_shared_memory_find (const GTorchStorage *storage)
{
  const struct _GTorchShareBackend *shares = GTORCH_DEVICE_GET_CLASS (storage->device)->shares;

  if (storage->free_func == free_shared_storage)
    return storage->free_data;
  return shares != NULL && shares->find_moved != NULL ? shares->find_moved (storage, g_object_unref)
                                                      : NULL;
}

static GMutex lent_lock;
GTORCH_FORK_LOCK (lent_lock);
static GHashTable *lent; /* under the lock: how often by storage, of those that could move */

GTorchStorage *
gtorch_shared_memory_hold_address (GTorchStorage *storage)
{
  gtorch_storage_ref (storage);
  if (storage->free_func != NULL || !gtorch_device_is_host (storage->device))
    return storage;
  g_mutex_lock (&lent_lock);
  if (lent == NULL)
    lent = g_hash_table_new (NULL, NULL);
  g_hash_table_insert (lent, storage,
                       GUINT_TO_POINTER (GPOINTER_TO_UINT (g_hash_table_lookup (lent, storage))
                                         + 1));
  g_mutex_unlock (&lent_lock);
  return storage;
}

void
gtorch_shared_memory_drop_address (GTorchStorage *storage)
{
  guint n;

  if (storage->free_func == NULL && gtorch_device_is_host (storage->device))
    {
      g_mutex_lock (&lent_lock);
      n = GPOINTER_TO_UINT (g_hash_table_lookup (lent, storage));
      if (n > 1)
        g_hash_table_insert (lent, storage, GUINT_TO_POINTER (n - 1));
      else
        g_hash_table_remove (lent, storage);
      g_mutex_unlock (&lent_lock);
    }
  gtorch_storage_unref (storage);
}

gboolean
gtorch_shared_memory_move (GTorchStorage *storage, GError **error)
{
  GTorchSharedMemory *self = gtorch_shared_memory_new_lasting (storage->n_bytes, error);
  guint n;

  if (self == NULL)
    return FALSE;
  g_mutex_lock (&lent_lock);
  n = lent != NULL ? GPOINTER_TO_UINT (g_hash_table_lookup (lent, storage)) : 0;
  if (n == 0)
    GTORCH_DEVICE_GET_CLASS (storage->device)
        ->shares->move (storage, self->map + HEAD, g_object_unref, self);
  g_mutex_unlock (&lent_lock);
  if (n == 0)
    return TRUE;
  g_object_unref (self);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("share_memory: %u arrays, buffers or tensors of other libraries have the memory "
                  "of "
                  "the tensor, and would not see it move: share it before it is given to them, or "
                  "clone it"),
               n);
  return FALSE;
}
