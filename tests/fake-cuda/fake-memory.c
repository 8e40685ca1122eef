/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory of the fake's devices. The host cannot access a reserved address range; the fake itself accesses
 * the mapped memory through a second range of the same size, its shadow. Memory that is shared with another
 * process moves to a file in memory when it is exported. */

#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake-cuda-private.h"

#define FRESH        0xcd /* the value of memory that was never written */
#define MAX_RESERVED (G_GUINT64_CONSTANT (1) << 45)

typedef struct
{
  FakeDevice *device;
  gsize size;
  guint n_mappings;
  gboolean released;
  int fd;               /* the file of memory that processes share, or -1 */
  gboolean is_imported; /* another process has made the memory */
} Handle;

typedef struct
{
  gsize offset, size;
  Handle *handle;
  guint32 access; /* bit i: device i has access */
} Mapping;

typedef struct
{
  guint64 base;
  gsize size;
  char *shadow;
  GArray *mappings;  /* of Mapping, by offset */
  gboolean is_plain; /* from cuMemAlloc () */
  gboolean is_async; /* from cuMemAllocAsync () */
  guint n_opened;    /* from cuIpcOpenMemHandle (): how often it is open */
} Reservation;

static GPtrArray *reservations;
static GPtrArray *handles; /* the program's handle is the index + 1; NULL: released */
static GHashTable *pinned; /* maps an address to its size */

static Reservation *
find_reservation (guint64 address, gsize size)
{
  guint i;

  for (i = 0; reservations != NULL && i < reservations->len; i++)
    {
      Reservation *r = reservations->pdata[i];

      if (address >= r->base && address - r->base < r->size
          && size <= r->size - (address - r->base))
        return r;
    }
  return NULL;
}

gpointer
fake_memory_at (guint64 address, gsize n_bytes, const FakeDevice *user)
{
  Reservation *r = find_reservation (address, n_bytes);
  gsize at, end;
  guint i;

  if (r == NULL)
    return NULL;
  at = address - r->base;
  end = at + n_bytes;
  for (i = 0; i < r->mappings->len && at < end; i++)
    {
      const Mapping *m = &g_array_index (r->mappings, Mapping, i);

      if (m->offset + m->size <= at)
        continue;
      if (m->offset > at || m->access == 0
          || (user != NULL && !(m->access & (1u << user->index))
              && !(r->is_plain && (user->peers & (1u << m->handle->device->index)))))
        return NULL;
      at = m->offset + m->size;
    }
  return at >= end ? r->shadow + (address - r->base) : NULL;
}

gboolean
fake_cuda_can_access (guint device, gconstpointer address, gsize n_bytes)
{
  gboolean result;

  g_mutex_lock (&fake_lock);
  result = fake_memory_at ((guintptr) address, n_bytes, &fake_devices[device]) != NULL;
  g_mutex_unlock (&fake_lock);
  return result;
}

gpointer
fake_cuda_at (gconstpointer address, gsize n_bytes)
{
  gpointer result;

  g_mutex_lock (&fake_lock);
  result = fake_memory_at ((guintptr) address, n_bytes, NULL);
  g_mutex_unlock (&fake_lock);
  return result;
}

gboolean
fake_cuda_peek (gconstpointer address, gpointer buffer, gsize n_bytes)
{
  gpointer from;

  g_mutex_lock (&fake_lock);
  from = fake_memory_at ((guintptr) address, n_bytes, NULL);
  if (from != NULL)
    memcpy (buffer, from, n_bytes);
  g_mutex_unlock (&fake_lock);
  return from != NULL;
}

/* --- addresses --- */

/* Returns addresses that begin with a page of the fake: not every system gives such by itself. */
static void *
reserve_addresses (gsize n_bytes)
{
  char *data = mmap (NULL, n_bytes + FAKE_PAGE, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const gsize before = (gsize) - (guintptr) data % FAKE_PAGE;

  if (data == MAP_FAILED)
    return data;
  if (before > 0)
    munmap (data, before);
  munmap (data + before + n_bytes, FAKE_PAGE - before);
  return data + before;
}

static Reservation *
reserve (gsize n_bytes)
{
  Reservation *r = g_new0 (Reservation, 1);
  void *base = reserve_addresses (n_bytes);
  void *shadow =
      mmap (NULL, n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  g_assert (base != MAP_FAILED && shadow != MAP_FAILED);
  r->base = (guintptr) base;
  r->shadow = shadow;
  r->size = n_bytes;
  r->mappings = g_array_new (FALSE, FALSE, sizeof (Mapping));
  if (reservations == NULL)
    reservations = g_ptr_array_new ();
  g_ptr_array_add (reservations, r);
  return r;
}

static void
unreserve (Reservation *r)
{
  munmap ((void *) (guintptr) r->base, r->size);
  munmap (r->shadow, r->size);
  g_array_unref (r->mappings);
  g_ptr_array_remove_fast (reservations, r);
  g_free (r);
}

CUresult
cuMemAddressReserve (CUdeviceptr *address, size_t n_bytes, size_t alignment, CUdeviceptr wanted,
                     unsigned long long flags)
{
  FakeDevice *device;

  ENTER_CURRENT (cuMemAddressReserve, device);
  if (n_bytes == 0 || n_bytes % FAKE_PAGE != 0 || flags != 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (n_bytes > MAX_RESERVED)
    LEAVE (CUDA_ERROR_OUT_OF_MEMORY);
  *address = reserve (n_bytes)->base;
  fake_accounts.reservations++;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemAddressFree (CUdeviceptr address, size_t n_bytes)
{
  Reservation *r;

  ENTER (cuMemAddressFree);
  r = find_reservation (address, n_bytes);
  if (r == NULL || r->base != address || r->size != n_bytes || r->is_plain)
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemAddressFree of what was not reserved"));
  if (r->mappings->len > 0)
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemAddressFree with memory mapped"));
  unreserve (r);
  fake_accounts.reservations--;
  LEAVE (CUDA_SUCCESS);
}

/* --- physical memory --- */

static Handle *
handle_new (FakeDevice *device, gsize size)
{
  Handle *handle = g_new0 (Handle, 1);

  handle->device = device;
  handle->size = size;
  handle->fd = -1;
  device->used += size;
  return handle;
}

static void
handle_drop (Handle *handle)
{
  if (!handle->released || handle->n_mappings > 0)
    return;
  if (!handle->is_imported)
    handle->device->used -= handle->size;
  if (handle->fd >= 0)
    close (handle->fd);
  g_free (handle);
}

static Handle *
find_handle (CUmemGenericAllocationHandle number)
{
  return handles != NULL && number > 0 && number <= handles->len ? handles->pdata[number - 1]
                                                                 : NULL;
}

static gboolean
is_free (const Reservation *r, gsize offset, gsize size, guint *position)
{
  guint i;

  for (i = 0; i < r->mappings->len; i++)
    {
      const Mapping *m = &g_array_index (r->mappings, Mapping, i);

      if (m->offset >= offset + size)
        break;
      if (m->offset + m->size > offset)
        return FALSE;
    }
  *position = i;
  return TRUE;
}

/* Returns a page of fresh memory; a mapping gets a private copy of it on write. */
static int
fresh_page (void)
{
  static int fd = -1;
  void *at;

  if (fd >= 0)
    return fd;
  fd = memfd_create ("fake-cuda", MFD_CLOEXEC);
  g_assert (fd >= 0 && ftruncate (fd, FAKE_PAGE) == 0);
  at = mmap (NULL, FAKE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  g_assert (at != MAP_FAILED);
  memset (at, FRESH, FAKE_PAGE);
  munmap (at, FAKE_PAGE);
  return fd;
}

static void
map_file (Reservation *r, gsize offset, const Handle *handle)
{
  void *at = mmap (r->shadow + offset, handle->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   handle->fd, 0);

  g_assert (at != MAP_FAILED);
}

/* The contents from a former mapping are lost; no program may rely on them. */
static void
map (Reservation *r, gsize offset, Handle *handle, guint position)
{
  const Mapping m = { offset, handle->size, handle, 0 };
  gsize done;

  if (handle->fd >= 0)
    map_file (r, offset, handle);
  for (done = 0; handle->fd < 0 && done < handle->size; done += FAKE_PAGE)
    {
      void *at = mmap (r->shadow + offset + done, FAKE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fresh_page (), 0);

      g_assert (at != MAP_FAILED);
    }
  handle->n_mappings++;
  g_array_insert_val (r->mappings, position, m);
}

static void
unmap (Reservation *r, guint i)
{
  const Mapping m = g_array_index (r->mappings, Mapping, i);
  void *at = mmap (r->shadow + m.offset, m.size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

  g_assert (at != MAP_FAILED);
  g_array_remove_index (r->mappings, i);
  m.handle->n_mappings--;
  handle_drop (m.handle);
}

CUresult
cuMemCreate (CUmemGenericAllocationHandle *handle, size_t n_bytes,
             const CUmemAllocationProp *properties, unsigned long long flags)
{
  FakeDevice *device;

  ENTER_CURRENT (cuMemCreate, device);
  if (n_bytes == 0 || n_bytes % FAKE_PAGE != 0 || flags != 0
      || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED
      || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id < 0
      || (guint) properties->location.id >= fake_n_devices)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  device = &fake_devices[properties->location.id];
  if (n_bytes > device->memory - MIN (device->used, device->memory))
    LEAVE (CUDA_ERROR_OUT_OF_MEMORY);
  if (handles == NULL)
    handles = g_ptr_array_new ();
  g_ptr_array_add (handles, handle_new (device, n_bytes));
  *handle = handles->len;
  fake_accounts.handles++;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemRelease (CUmemGenericAllocationHandle number)
{
  Handle *handle;

  ENTER (cuMemRelease);
  handle = find_handle (number);
  if (handle == NULL)
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemRelease of handle %llu", number));
  handles->pdata[number - 1] = NULL;
  handle->released = TRUE;
  handle_drop (handle);
  fake_accounts.handles--;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemMap (CUdeviceptr address, size_t n_bytes, size_t offset, CUmemGenericAllocationHandle number,
          unsigned long long flags)
{
  FakeDevice *device;
  Reservation *r;
  Handle *handle;
  guint position;

  ENTER_CURRENT (cuMemMap, device);
  r = find_reservation (address, n_bytes);
  handle = find_handle (number);
  if (r == NULL || handle == NULL || address % FAKE_PAGE != 0 || offset != 0 || flags != 0
      || (n_bytes != handle->size && !handle->is_imported))
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemMap with bad arguments"));
  if (n_bytes != handle->size) /* another process has told the size */
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (!is_free (r, address - r->base, n_bytes, &position))
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemMap where memory is mapped already"));
  map (r, address - r->base, handle, position);
  fake_accounts.mappings++;
  LEAVE (CUDA_SUCCESS);
}

/* Finds the mappings [*first, *end) that make up the range exactly. */
static gboolean
find_mappings (const Reservation *r, gsize offset, gsize size, guint *first, guint *end)
{
  gsize at = offset;
  guint i;

  for (i = 0; i < r->mappings->len; i++)
    if (g_array_index (r->mappings, Mapping, i).offset >= offset)
      break;
  *first = i;
  for (; i < r->mappings->len && at < offset + size; i++)
    {
      const Mapping *m = &g_array_index (r->mappings, Mapping, i);

      if (m->offset != at)
        return FALSE;
      at += m->size;
    }
  *end = i;
  return at == offset + size && size > 0;
}

CUresult
cuMemUnmap (CUdeviceptr address, size_t n_bytes)
{
  FakeDevice *device;
  Reservation *r;
  guint first, end;

  ENTER_CURRENT (cuMemUnmap, device);
  r = find_reservation (address, n_bytes);
  if (r == NULL || !find_mappings (r, address - r->base, n_bytes, &first, &end))
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemUnmap of what is not mapped"));
  for (; end > first; end--)
    {
      unmap (r, end - 1);
      fake_accounts.mappings--;
    }
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemSetAccess (CUdeviceptr address, size_t n_bytes, const CUmemAccessDesc *descriptions,
                size_t count)
{
  FakeDevice *device;
  Reservation *r;
  guint first, end;
  gsize i;

  ENTER_CURRENT (cuMemSetAccess, device);
  r = find_reservation (address, n_bytes);
  if (r == NULL || !find_mappings (r, address - r->base, n_bytes, &first, &end))
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemSetAccess of what is not mapped"));
  for (i = 0; i < count; i++)
    if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE
        || descriptions[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        || descriptions[i].location.id < 0 || (guint) descriptions[i].location.id >= fake_n_devices
        || (!fake_have_peers
            && &fake_devices[descriptions[i].location.id]
                   != g_array_index (r->mappings, Mapping, first).handle->device))
      LEAVE (CUDA_ERROR_INVALID_DEVICE);
  for (; first < end; first++)
    for (i = 0; i < count; i++)
      g_array_index (r->mappings, Mapping, first).access |= 1u << descriptions[i].location.id;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemGetAllocationGranularity (size_t *granularity, const CUmemAllocationProp *properties,
                               CUmemAllocationGranularity_flags option)
{
  ENTER (cuMemGetAllocationGranularity);
  *granularity = FAKE_PAGE;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemGetInfo (size_t *available, size_t *total)
{
  FakeDevice *device;

  ENTER_CURRENT (cuMemGetInfo, device);
  *total = device->memory;
  *available = device->memory - MIN (device->used, device->memory);
  LEAVE (CUDA_SUCCESS);
}

/* --- plain allocations --- */

static Reservation *
allocate (FakeDevice *device, gsize n_bytes)
{
  const gsize size = (n_bytes + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE;
  Reservation *r;
  Handle *handle;

  if (size > device->memory - MIN (device->used, device->memory))
    return NULL;
  r = reserve (size);
  handle = handle_new (device, size);
  map (r, 0, handle, 0);
  g_array_index (r->mappings, Mapping, 0).access = 1u << device->index;
  handle->released = TRUE; /* freed together with the mapping */
  fake_accounts.handles++;
  return r;
}

static void
deallocate (Reservation *r)
{
  unmap (r, 0);
  unreserve (r);
  fake_accounts.handles--;
}

CUresult
cuMemGetAddressRange (CUdeviceptr *start, size_t *n_bytes, CUdeviceptr address)
{
  FakeDevice *device;
  const Reservation *r;

  ENTER_CURRENT (cuMemGetAddressRange, device);
  r = find_reservation (address, 1);
  if (r == NULL)
    LEAVE (CUDA_ERROR_NOT_FOUND);
  *start = r->base;
  *n_bytes = r->size;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemAlloc (CUdeviceptr *address, size_t n_bytes)
{
  FakeDevice *device;
  Reservation *r;

  ENTER_CURRENT (cuMemAlloc, device);
  REFUSE_IN_CAPTURE ();
  if (n_bytes == 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  r = allocate (device, n_bytes);
  if (r == NULL)
    LEAVE (CUDA_ERROR_OUT_OF_MEMORY);
  r->is_plain = TRUE;
  *address = r->base;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemFree (CUdeviceptr address)
{
  FakeDevice *device;
  Reservation *r;

  ENTER_CURRENT (cuMemFree, device);
  REFUSE_IN_CAPTURE ();
  r = find_reservation (address, 1);
  if (r == NULL || !r->is_plain || r->n_opened > 0 || r->base != address)
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemFree of what was not allocated"));
  fake_device_drain (device);
  deallocate (r);
  LEAVE (CUDA_SUCCESS);
}

/* --- memory that processes share --- */

#define MAGIC G_GUINT64_CONSTANT (0x46616b654d656d21)
#define NAME  "fake-cuda-memory-"

typedef struct
{
  guint64 magic;
  gint32 process, fd;
} MemHandle;

/* Moves the memory to a file, whose name tells the device. */
static gboolean
share (Handle *handle)
{
  g_autofree gchar *name = g_strdup_printf (NAME "%u", handle->device->physical);
  gboolean is_copied = FALSE;
  guint i, k;

  if (handle->fd >= 0)
    return TRUE;
  handle->fd = memfd_create (name, MFD_CLOEXEC);
  if (handle->fd < 0 || ftruncate (handle->fd, (off_t) handle->size) < 0)
    return FALSE;
  for (i = 0; reservations != NULL && i < reservations->len; i++)
    {
      Reservation *r = reservations->pdata[i];

      for (k = 0; k < r->mappings->len; k++)
        {
          const Mapping *m = &g_array_index (r->mappings, Mapping, k);

          if (m->handle != handle)
            continue;
          if (!is_copied
              && pwrite (handle->fd, r->shadow + m->offset, handle->size, 0)
                     != (gssize) handle->size)
            return FALSE;
          is_copied = TRUE;
          map_file (r, m->offset, handle);
        }
    }
  return TRUE;
}

/* Makes a handle of shared memory; takes the file descriptor. NULL if it is another file. */
static Handle *
handle_open (int fd)
{
  gchar path[64], name[128] = "";
  struct stat info;
  Handle *handle;
  guint physical, i;

  g_snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
  if (fd >= 0 && readlink (path, name, sizeof name - 1) > 0
      && sscanf (name, "/memfd:" NAME "%u", &physical) == 1 && fstat (fd, &info) == 0)
    for (i = 0; i < fake_n_devices; i++)
      if (fake_devices[i].physical == physical)
        {
          handle = g_new0 (Handle, 1);
          handle->device = &fake_devices[i];
          handle->size = (gsize) info.st_size;
          handle->fd = fd;
          handle->is_imported = TRUE;
          return handle;
        }
  if (fd >= 0)
    close (fd);
  return NULL;
}

CUresult
cuMemExportToShareableHandle (void *shareable, CUmemGenericAllocationHandle number,
                              CUmemAllocationHandleType type, unsigned long long flags)
{
  Handle *handle;

  ENTER (cuMemExportToShareableHandle);
  handle = find_handle (number);
  if (handle == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0)
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemExportToShareableHandle of what is not"));
  if (!share (handle))
    LEAVE (CUDA_ERROR_OUT_OF_MEMORY);
  *(int *) shareable = fcntl (handle->fd, F_DUPFD_CLOEXEC, 0);
  LEAVE (*(int *) shareable >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult
cuMemImportFromShareableHandle (CUmemGenericAllocationHandle *number, void *shareable,
                                CUmemAllocationHandleType type)
{
  FakeDevice *device;
  Handle *handle;

  ENTER_CURRENT (cuMemImportFromShareableHandle, device);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  handle = handle_open (fcntl ((int) (gintptr) shareable, F_DUPFD_CLOEXEC, 0));
  if (handle == NULL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (handles == NULL)
    handles = g_ptr_array_new ();
  g_ptr_array_add (handles, handle);
  *number = handles->len;
  fake_accounts.handles++;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuIpcGetMemHandle (CUipcMemHandle *out, CUdeviceptr address)
{
  MemHandle own = { MAGIC, getpid (), -1 };
  FakeDevice *device;
  Reservation *r;
  Handle *handle;

  ENTER_CURRENT (cuIpcGetMemHandle, device);
  r = find_reservation (address, 1);
  if (r == NULL || !r->is_plain || r->n_opened > 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  handle = g_array_index (r->mappings, Mapping, 0).handle;
  if (!share (handle))
    LEAVE (CUDA_ERROR_OUT_OF_MEMORY);
  own.fd = handle->fd;
  memset (out, 0, sizeof *out);
  memcpy (out, &own, sizeof own);
  LEAVE (CUDA_SUCCESS);
}

/* The reservation in which this memory is open already, or NULL. */
static Reservation *
find_opened (const Handle *handle)
{
  struct stat info, other;
  guint i;

  for (i = 0; reservations != NULL && i < reservations->len; i++)
    {
      Reservation *r = reservations->pdata[i];

      if (r->n_opened > 0 && fstat (handle->fd, &info) == 0
          && fstat (g_array_index (r->mappings, Mapping, 0).handle->fd, &other) == 0
          && info.st_ino == other.st_ino)
        return r;
    }
  return NULL;
}

CUresult
cuIpcOpenMemHandle (CUdeviceptr *address, CUipcMemHandle from, unsigned int flags)
{
  g_autofree gchar *path = NULL;
  FakeDevice *device;
  Reservation *r;
  MemHandle other;
  Handle *handle;

  ENTER_CURRENT (cuIpcOpenMemHandle, device);
  memcpy (&other, &from, sizeof other);
  if (other.magic != MAGIC || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (other.process == getpid ()) /* the real driver refuses that, too */
    LEAVE (CUDA_ERROR_INVALID_CONTEXT);
  path = g_strdup_printf ("/proc/%d/fd/%d", other.process, other.fd);
  handle = handle_open (open (path, O_RDWR | O_CLOEXEC));
  if (handle == NULL || handle->device != device)
    {
      if (handle != NULL)
        {
          handle->released = TRUE;
          handle_drop (handle);
        }
      LEAVE (CUDA_ERROR_INVALID_VALUE);
    }
  r = find_opened (handle);
  handle->released = TRUE; /* freed together with the mapping */
  if (r != NULL)
    handle_drop (handle);
  else
    {
      r = reserve (handle->size);
      map (r, 0, handle, 0);
      g_array_index (r->mappings, Mapping, 0).access = 1u << device->index;
      r->is_plain = TRUE;
      fake_accounts.handles++;
    }
  r->n_opened++;
  *address = r->base;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuIpcCloseMemHandle (CUdeviceptr address)
{
  FakeDevice *device;
  Reservation *r;

  ENTER_CURRENT (cuIpcCloseMemHandle, device);
  REFUSE_IN_CAPTURE ();
  r = find_reservation (address, 1);
  if (r == NULL || r->n_opened == 0 || r->base != address)
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuIpcCloseMemHandle of what is not open"));
  fake_device_drain (device);
  if (--r->n_opened == 0)
    deallocate (r);
  LEAVE (CUDA_SUCCESS);
}

/* --- stream-ordered allocations --- */

CUresult
cuMemAllocAsync (CUdeviceptr *address, size_t n_bytes, CUstream stream)
{
  FakeDevice *device;
  Reservation *r;

  ENTER_CURRENT (cuMemAllocAsync, device);
  stream = fake_stream_find (stream);
  if (stream == NULL || n_bytes == 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (stream->capture != NULL) /* the fake has no memory nodes */
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  r = allocate (device, n_bytes);
  if (r == NULL)
    { /* pending frees may return memory */
      fake_device_drain (device);
      r = allocate (device, n_bytes);
    }
  if (r == NULL)
    LEAVE (CUDA_ERROR_OUT_OF_MEMORY);
  r->is_async = TRUE;
  g_array_index (r->mappings, Mapping, 0).access |= device->pool_readers;
  *address = r->base;
  LEAVE (CUDA_SUCCESS);
}

void
fake_memory_free (guint64 address)
{
  deallocate (find_reservation (address, 1));
}

CUresult
cuMemFreeAsync (CUdeviceptr address, CUstream stream)
{
  FakeDevice *device;
  Reservation *r;

  ENTER_CURRENT (cuMemFreeAsync, device);
  stream = fake_stream_find (stream);
  if (stream == NULL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (stream->capture != NULL)
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  r = find_reservation (address, 1);
  if (r == NULL || !r->is_async || r->base != address)
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemFreeAsync of what was not allocated"));
  r->is_async = FALSE; /* not freed twice */
  LEAVE (fake_stream_push (stream, &(FakeOp){ .kind = FAKE_FREE, .freed = address }));
}

CUresult
cuDeviceGetDefaultMemPool (CUmemoryPool *pool, CUdevice number)
{
  ENTER (cuDeviceGetDefaultMemPool);
  if (number < 0 || (guint) number >= fake_n_devices)
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  *pool = (CUmemoryPool) &fake_devices[number];
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemPoolTrimTo (CUmemoryPool pool, size_t n_bytes)
{
  ENTER (cuMemPoolTrimTo);
  LEAVE (pool != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult
cuMemPoolSetAttribute (CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
  ENTER (cuMemPoolSetAttribute);
  LEAVE (pool != NULL && value != NULL && attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE);
}

CUresult
cuMemPoolSetAccess (CUmemoryPool pool, const CUmemAccessDesc *descriptions, size_t count)
{
  FakeDevice *device = (FakeDevice *) pool;
  gsize i;
  guint k;

  ENTER (cuMemPoolSetAccess);
  for (i = 0; i < count; i++)
    {
      if (descriptions[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE
          || (guint) descriptions[i].location.id >= fake_n_devices || !fake_have_peers)
        LEAVE (CUDA_ERROR_INVALID_DEVICE);
      device->pool_readers |= 1u << descriptions[i].location.id;
    }
  for (k = 0; reservations != NULL && k < reservations->len; k++)
    {
      Reservation *r = reservations->pdata[k];

      if (r->is_async && g_array_index (r->mappings, Mapping, 0).handle->device == device)
        g_array_index (r->mappings, Mapping, 0).access |= device->pool_readers;
    }
  LEAVE (CUDA_SUCCESS);
}

/* --- host memory --- */

gboolean
fake_memory_is_pinned (gconstpointer address)
{
  GHashTableIter iter;
  gpointer start, size;

  if (pinned == NULL)
    return FALSE;
  g_hash_table_iter_init (&iter, pinned);
  while (g_hash_table_iter_next (&iter, &start, &size))
    if ((const char *) address >= (char *) start
        && (gsize) ((const char *) address - (char *) start) < GPOINTER_TO_SIZE (size))
      return TRUE;
  return FALSE;
}

CUresult
cuMemHostAlloc (void **address, size_t n_bytes, unsigned int flags)
{
  FakeDevice *device;

  ENTER_CURRENT (cuMemHostAlloc, device);
  REFUSE_IN_CAPTURE ();
  if (pinned == NULL)
    pinned = g_hash_table_new (NULL, NULL);
  *address = g_aligned_alloc (1, (n_bytes + 4095) / 4096 * 4096, 4096);
  memset (*address, FRESH, n_bytes);
  g_hash_table_insert (pinned, *address, GSIZE_TO_POINTER (n_bytes));
  fake_accounts.pinned++;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemFreeHost (void *address)
{
  FakeDevice *device;

  ENTER_CURRENT (cuMemFreeHost, device);
  REFUSE_IN_CAPTURE ();
  if (pinned == NULL || !g_hash_table_remove (pinned, address))
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost of what was not allocated"));
  fake_stall ();
  fake_device_drain (device);
  g_aligned_free (address);
  fake_accounts.pinned--;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemHostRegister (void *address, size_t n_bytes, unsigned int flags)
{
  FakeDevice *device;

  ENTER_CURRENT (cuMemHostRegister, device);
  REFUSE_IN_CAPTURE ();
  if (address == NULL || n_bytes == 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (fake_memory_is_pinned (address))
    LEAVE (CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  if (pinned == NULL)
    pinned = g_hash_table_new (NULL, NULL);
  g_hash_table_insert (pinned, address, GSIZE_TO_POINTER (n_bytes));
  fake_accounts.pinned++;
  fake_accounts.registered++;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuMemHostUnregister (void *address)
{
  FakeDevice *device;

  ENTER_CURRENT (cuMemHostUnregister, device);
  REFUSE_IN_CAPTURE ();
  if (pinned == NULL || !g_hash_table_remove (pinned, address))
    LEAVE (
        fake_misuse (CUDA_ERROR_INVALID_VALUE, "cuMemHostUnregister of what was not registered"));
  fake_device_drain (device);
  fake_accounts.pinned--;
  fake_accounts.registered--;
  LEAVE (CUDA_SUCCESS);
}

/* Like the real driver, it does not know other addresses, but does not report them as errors. */
CUresult
cuPointerGetAttributes (unsigned int n, CUpointer_attribute *attributes, void **data,
                        CUdeviceptr address)
{
  const Reservation *r;
  guint i;

  ENTER (cuPointerGetAttributes);
  r = find_reservation (address, 1);
  for (i = 0; i < n; i++)
    {
      if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        {
          *(int *) data[i] =
              r != NULL && r->mappings->len > 0
                  ? (int) g_array_index (r->mappings, Mapping, 0).handle->device->index
                  : -2;
          continue;
        }
      if (attributes[i] != CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        LEAVE (CUDA_ERROR_NOT_SUPPORTED);
      if (r != NULL && r->mappings->len > 0)
        *(CUmemorytype *) data[i] = CU_MEMORYTYPE_DEVICE;
      else
        *(CUmemorytype *) data[i] =
            fake_memory_is_pinned ((gconstpointer) (guintptr) address) ? CU_MEMORYTYPE_HOST : 0;
    }
  LEAVE (CUDA_SUCCESS);
}
