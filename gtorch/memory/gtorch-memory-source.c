/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "memory/gtorch-memory-source.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>

#include "memory/gtorch-allocator-private.h"
#include "base/gtorch-environment-private.h"

/**
 * GTorchMemorySource:
 *
 * Where the memory of a GPU comes from, if it is not to be the driver.
 *
 * A program that has an allocator of its own, or must have its memory registered somewhere, makes a
 * subclass with two functions, or takes those of a library that was made for PyTorch's
 * `CUDAPluggableAllocator`:
 *
 * ```c
 * g_autoptr (GTorchMemorySource) source =
 *     gtorch_memory_source_load ("libmine.so", "my_malloc", "my_free", &error);
 *
 * if (source == NULL || !gtorch_allocator_set_source (allocator, source, &error))
 *   return FALSE;
 * ```
 *
 * With [method@Allocator.set_source] all tensors of a device have their memory from there, each by a
 * call of its own; with [ctor@MemoryPool.new_with_source] it is those of a pool, which asks for large
 * pieces, keeps them and cuts them up. Both are counted as other memory is.
 *
 * The functions are called in whatever thread allocates or drops a tensor, with the GPU's primary context
 * current, and no lock of the library is held. They may be written in Python, but not in JavaScript,
 * which runs in one thread only.
 *
 * Since: 0.1
 */
G_DEFINE_ABSTRACT_TYPE (GTorchMemorySource, gtorch_memory_source, G_TYPE_OBJECT)

/* Whoever splits or joins memory, and kernels that read 16 bytes at a time, rely on it. */
#define ALIGNMENT 256

static void
gtorch_memory_source_class_init (GTorchMemorySourceClass *klass)
{
}

static void
gtorch_memory_source_init (GTorchMemorySource *self)
{
}

/* --- of a library --- */

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
 * @free_symbol: the name of `void (void *address, ssize_t size, int device, CUstream stream)`
 * @error: return location for an error
 *
 * Makes a source of two functions in a library, which stays loaded. In a process with rights that its user
 * lacks, such as a setuid one, a @path that has a slash must begin with one.
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
  guint i;

  g_return_val_if_fail (path != NULL, NULL);
  g_return_val_if_fail (alloc_symbol != NULL && free_symbol != NULL, NULL);
  library = gtorch_library_open (path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                   _ ("allocator: the library cannot be loaded: %s"), gtorch_library_error ());
      return NULL;
    }
  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      functions[i] = dlsym (library, names[i]);
      if (functions[i] != NULL)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                   _ ("allocator: there is no function “%s” in %s"), names[i], path);
      dlclose (library);
      return NULL;
    }
  self = g_object_new (gtorch_library_source_get_type (), NULL);
  self->alloc = (AllocFunc) functions[0];
  self->free = (FreeFunc) functions[1];
  return GTORCH_MEMORY_SOURCE (self);
}

/* --- what is asked --- */

/* Who allocates in this thread, the last one first: memory for a source cannot come from that source, not by
 * way of another one either. */
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
 * @n_bytes: how many bytes, at least 1
 * @stream: the driver's handle of the stream whose work is the first to use it
 * @error: return location for an error
 *
 * Gets memory, aligned to 256 bytes. Subclasses implement this; the library calls it.
 *
 * Where there is none, what the library keeps unused is given back and the question repeated; in the end
 * whoever wanted it gets %GTORCH_ERROR_OUT_OF_MEMORY. Any other error goes to them as it is. A source
 * that asks itself while it allocates, as by a tensor from its own pool, gets %GTORCH_ERROR_INVALID.
 *
 * Returns: the address; 0 if there is no memory, with or without %GTORCH_ERROR_OUT_OF_MEMORY, or with
 *   another error
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
  guint64 address;

  g_return_val_if_fail (GTORCH_IS_MEMORY_SOURCE (self), 0);
  g_return_val_if_fail (GTORCH_IS_DEVICE (device), 0);
  device = gtorch_device_resolved (device);
  klass = GTORCH_MEMORY_SOURCE_GET_CLASS (self);
  if (klass->allocate == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("allocator: %s does not say how memory is allocated"),
                   G_OBJECT_TYPE_NAME (self));
      return 0;
    }
  for (outer = asking; outer != NULL; outer = outer->outer)
    if (outer->source == self)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("allocator: %s asks itself for %" G_GUINT64_FORMAT
                        " bytes while it allocates: a source must take memory from elsewhere"),
                     G_OBJECT_TYPE_NAME (self), n_bytes);
        return 0;
      }
  asking = &here;
  address = klass->allocate (self, device, n_bytes, stream, error);
  asking = here.outer;
  if (address % ALIGNMENT == 0)
    return address;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("allocator: %s gave memory at 0x%" G_GINT64_MODIFIER
                  "x, which is not a multiple of %d"),
               G_OBJECT_TYPE_NAME (self), address, ALIGNMENT);
  gtorch_memory_source_release (self, device, address, n_bytes, stream);
  return 0;
}

/**
 * gtorch_memory_source_release:
 * @self: a source
 * @device: a GPU
 * @address: what [method@MemorySource.allocate] gave
 * @n_bytes: how many bytes were asked for
 * @stream: the stream that was named then
 *
 * Takes memory back. Subclasses implement this; the library calls it.
 *
 * What is in the stream's queue by now may still use the memory; other streams are done with it.
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
 * @source: (nullable): where memory shall come from, or %NULL for the driver
 * @error: return location for an error
 *
 * Lets all memory of the device's tensors come from @source, before any of them has some.
 *
 * Nothing is kept for later tensors then, and `backend` in [method@Allocator.configure] means nothing.
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
 * Gets where the memory of the device's tensors comes from.
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
