/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "memory/gtorch-memory-source.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "memory/gtorch-allocator-private.h"
#include "base/gtorch-environment-private.h"
#include "base/gtorch-text-private.h"

/**
 * GTorchMemorySource:
 *
 * A source of GPU memory other than the driver.
 *
 * A program that has its own allocator, or must register its memory somewhere, subclasses this with two
 * functions, or uses those of a library that was written for PyTorch's `CUDAPluggableAllocator`:
 *
 * ```c
 * g_autoptr (GTorchMemorySource) source =
 *     gtorch_memory_source_load ("libmine.so", "my_malloc", "my_free", &error);
 *
 * if (source == NULL || !gtorch_allocator_set_source (allocator, source, &error))
 *   return FALSE;
 * ```
 *
 * With [method@Allocator.set_source] the source provides the memory of all tensors of a device, with one
 * call for each; with [ctor@MemoryPool.new_with_source] it provides that of a pool, which allocates large
 * segments, keeps them and splits them. Both are counted like other memory.
 *
 * The functions are called in any thread that allocates or frees a tensor, with the GPU's primary context
 * current and without holding a lock of the library. They may be written in Python, but not in JavaScript,
 * which runs in one thread only.
 *
 * Since: 0.1
 */
G_DEFINE_ABSTRACT_TYPE (GTorchMemorySource, gtorch_memory_source, G_TYPE_OBJECT)

/* Required by the code that splits and joins memory, and by kernels that read 16 bytes at a time. */
#define ALIGNMENT 256

static void
gtorch_memory_source_class_init (GTorchMemorySourceClass *klass)
{
}

static void
gtorch_memory_source_init (GTorchMemorySource *self)
{
}

/* --- sources from a library --- */

typedef gpointer (*AllocFunc) (gssize n_bytes, gint device, gpointer stream);
typedef void (*FreeFunc) (gpointer address, gssize n_bytes, gint device, gpointer stream);

typedef struct
{
  GTorchMemorySource parent_instance;
  AllocFunc alloc;
  FreeFunc free;
} GTorchLibrarySource;

typedef GTorchMemorySourceClass GTorchLibrarySourceClass;

GType gtorch_library_source_get_type (void);

G_DEFINE_TYPE (GTorchLibrarySource, gtorch_library_source, GTORCH_TYPE_MEMORY_SOURCE)

static guint64
gtorch_library_source_allocate (GTorchMemorySource *source, GTorchDevice *device, guint64 n_bytes,
                                guint64 stream, GError **error)
{
  GTorchLibrarySource *self = (GTorchLibrarySource *) source;

  return (guintptr) self->alloc (n_bytes, device->index, (gpointer) (guintptr) stream);
}

static void
gtorch_library_source_release (GTorchMemorySource *source, GTorchDevice *device, guint64 address,
                               guint64 n_bytes, guint64 stream)
{
  GTorchLibrarySource *self = (GTorchLibrarySource *) source;

  self->free ((gpointer) (guintptr) address, n_bytes, device->index, (gpointer) (guintptr) stream);
}

static void
gtorch_library_source_class_init (GTorchLibrarySourceClass *klass)
{
  klass->allocate = gtorch_library_source_allocate;
  klass->release = gtorch_library_source_release;
}

static void
gtorch_library_source_init (GTorchLibrarySource *self)
{
}

/**
 * gtorch_memory_source_load:
 * @path: (type filename): the name of a library, as `dlopen()` takes it
 * @alloc_symbol: the name of `void *(ssize_t size, int device, CUstream stream)` in it
 * @free_symbol: the name of `void (void *address, ssize_t size, int device, CUstream stream)` in it
 * @error: return location for an error
 *
 * Creates a source from two functions of a library, which stays loaded. In a privileged process, such as a
 * setuid one, a @path that contains a slash must be absolute.
 *
 * Returns: (transfer full): a source; %NULL with %GTORCH_ERROR_NOT_FOUND if the library or one of the
 *   functions is missing
 *
 * Since: 0.1
 */
GTorchMemorySource *
gtorch_memory_source_load (const gchar *path, const gchar *alloc_symbol, const gchar *free_symbol,
                           GError **error)
{
  GTorchLibrarySource *self;
  gpointer library, functions[2];
  const gchar *names[] = { alloc_symbol, free_symbol };
  g_autofree gchar *name = NULL;
  guint i;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (alloc_symbol != NULL && free_symbol != NULL, NULL);
  name = g_filename_display_name (path);
  library = gtorch_library_open (path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    {
      g_autofree gchar *reason = g_utf8_make_valid (gtorch_library_error (), -1);

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                   _ ("allocator: the library cannot be loaded: %s"), reason);
      return NULL;
    }
  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      functions[i] = dlsym (library, names[i]);
      if (functions[i] != NULL)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                   _ ("allocator: there is no function “%s” in %s"), gtorch_name_str (names[i]),
                   name);
      dlclose (library);
      return NULL;
    }
  self = g_object_new (gtorch_library_source_get_type (), NULL);
  self->alloc = (AllocFunc) functions[0];
  self->free = (FreeFunc) functions[1];
  return GTORCH_MEMORY_SOURCE (self);
}

/* --- calls of a source --- */

/* The sources that are allocating in this thread, innermost first: memory for a source must not come from
 * that source, not even through another one. */
typedef struct _Asking Asking;
struct _Asking
{
  GTorchMemorySource *source;
  const Asking *outer;
};

static __thread const Asking *asking;

/**
 * gtorch_memory_source_allocate:
 * @self: a source
 * @device: a GPU
 * @n_bytes: the number of bytes, at least 1
 * @stream: the driver's handle of the stream that uses the memory first
 * @error: return location for an error
 *
 * Allocates memory, aligned to 256 bytes. Subclasses implement this; the library calls it.
 *
 * If there is no memory, the library returns what it caches and tries again; if that fails too, the
 * allocation fails with %GTORCH_ERROR_OUT_OF_MEMORY. Any other error is passed on unchanged. A source that
 * allocates from itself while it allocates, for example by creating a tensor in its own pool, gets
 * %GTORCH_ERROR_INVALID.
 *
 * Returns: the address; 0 without an error or with %GTORCH_ERROR_OUT_OF_MEMORY if there is no memory, 0
 *   with another error if it failed otherwise
 *
 * Since: 0.1
 */
guint64
gtorch_memory_source_allocate (GTorchMemorySource *self, GTorchDevice *device, guint64 n_bytes,
                               guint64 stream, GError **error)
{
  const Asking here = { self, asking };
  GTorchMemorySourceClass *klass;
  const Asking *outer;
  GError *failure = NULL;
  guint64 address;

  g_return_val_if_fail (GTORCH_IS_MEMORY_SOURCE (self), 0);
  g_return_val_if_fail (GTORCH_IS_DEVICE (device), 0);
  device = gtorch_device_resolved (device);
  klass = GTORCH_MEMORY_SOURCE_GET_CLASS (self);
  if (klass->allocate == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("allocator: %s does not implement allocate"), G_OBJECT_TYPE_NAME (self));
      return 0;
    }
  for (outer = asking; outer != NULL; outer = outer->outer)
    if (outer->source == self)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("allocator: %s asks itself for %" PRIu64
                        " bytes while it allocates: a source must take memory from elsewhere"),
                     G_OBJECT_TYPE_NAME (self), n_bytes);
        return 0;
      }
  asking = &here;
  address = klass->allocate (self, device, n_bytes, stream, &failure);
  asking = here.outer;
  if (failure != NULL)
    {
      if (address != 0)
        gtorch_memory_source_release (self, device, address, n_bytes, stream);
      g_propagate_error (error, failure);
      return 0;
    }
  if (address % ALIGNMENT == 0)
    return address;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("allocator: %s gave memory at 0x%" PRIx64 ", which is not a multiple of %d"),
               G_OBJECT_TYPE_NAME (self), address, ALIGNMENT);
  gtorch_memory_source_release (self, device, address, n_bytes, stream);
  return 0;
}

/**
 * gtorch_memory_source_release:
 * @self: a source
 * @device: a GPU
 * @address: an address from [method@MemorySource.allocate]
 * @n_bytes: the number of bytes that was requested
 * @stream: the stream that was passed to [method@MemorySource.allocate]
 *
 * Frees memory. Subclasses implement this; the library calls it.
 *
 * Work that is enqueued on @stream at this time may still use the memory; other streams no longer use it.
 *
 * Since: 0.1
 */
void
gtorch_memory_source_release (GTorchMemorySource *self, GTorchDevice *device, guint64 address,
                              guint64 n_bytes, guint64 stream)
{
  GTorchMemorySourceClass *klass;

  g_return_if_fail (GTORCH_IS_MEMORY_SOURCE (self));
  g_return_if_fail (GTORCH_IS_DEVICE (device));
  device = gtorch_device_resolved (device);
  klass = GTORCH_MEMORY_SOURCE_GET_CLASS (self);
  if (klass->release != NULL)
    klass->release (self, device, address, n_bytes, stream);
}

/**
 * gtorch_allocator_set_source:
 * @self: an allocator
 * @source: (nullable): the source of the memory, or %NULL for the driver
 * @error: return location for an error
 *
 * Makes @source provide the memory of all tensors of the device. Must be called before the device
 * allocates.
 *
 * Memory is then not cached, and `backend` in [method@Allocator.configure] has no effect.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED on the CPU, or with
 *   %GTORCH_ERROR_INVALID after the device has allocated
 *
 * Since: 0.1
 */
gboolean
gtorch_allocator_set_source (GTorchAllocator *self, GTorchMemorySource *source, GError **error)
{
  gboolean started;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), FALSE);
  g_return_val_if_fail (source == NULL || GTORCH_IS_MEMORY_SOURCE (source), FALSE);
  if (GTORCH_DEVICE_GET_CLASS (self->device)->pools == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("allocator: the memory of %s always comes from the system"),
                   gtorch_device_name (self->device));
      return FALSE;
    }
  g_mutex_lock (&self->config_lock);
  started = g_atomic_int_get (&self->started);
  if (!started)
    g_set_object (&self->source, source);
  g_mutex_unlock (&self->config_lock);
  if (started)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("allocator: the source of memory of %s cannot be changed after it has "
                    "allocated"),
                 gtorch_device_name (self->device));
  return !started;
}

/**
 * gtorch_allocator_get_source:
 * @self: an allocator
 *
 * Gets the source of the memory of the device's tensors.
 *
 * Returns: (transfer none) (nullable): the source, or %NULL for the driver
 *
 * Since: 0.1
 */
GTorchMemorySource *
gtorch_allocator_get_source (GTorchAllocator *self)
{
  GTorchMemorySource *source;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), NULL);
  g_mutex_lock (&self->config_lock);
  source = self->source;
  g_mutex_unlock (&self->config_lock);
  return source;
}
