/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Error reports for a device that has failed.
 *
 * A GPU works asynchronously, and the driver reports a kernel's failure at the next call, whatever it is.
 * From then on every call that needs the device returns the same error. To report more than that, each lane
 * numbers the operations that it is given, notes the names of the last ones, and keeps the last number that
 * the device is known to have completed, which every successful wait updates. One of the operations in
 * between has failed.
 *
 * To find out which one, the device has to record its progress. With GTORCH_CHECK=errors it does: after
 * each operation it writes the operation's number into host memory, which can still be read after a failure
 * (events cannot: the driver only repeats the error). If several lanes have unfinished work, the first
 * unfinished operation of each is named, as one of them has failed. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"

/* The maximum number of open pieces of work: an operation, and perhaps one within it on a lane of another
 * device. */
#define MAX_OPEN 2

typedef struct
{
  GTorchCudaLane *lane;
  guint64 number;
  const gchar *what;
  guint depth; /* nesting depth */
} Open;

static __thread Open pieces[MAX_OPEN];
static __thread guint n_open;

/* --- taking notes --- */

static void
set_note (GTorchCudaLane *lane, guint64 number, const gchar *what)
{
  GTorchCudaNote *note = &lane->notes[number % GTORCH_CUDA_N_NOTES];

  __atomic_store_n (&note->number, 0, __ATOMIC_RELAXED);
  __atomic_store_n (&note->what, what, __ATOMIC_RELEASE);
  __atomic_store_n (&note->number, number, __ATOMIC_RELEASE);
}

static G_GNUC_NO_INLINE void
set_site (GTorchCudaLane *lane, guint64 number)
{
  GTorchCudaDevice *device = lane->device;
  GTorchSite site;
  guint32 *cell = NULL;

  if (g_atomic_pointer_get (&lane->sites) == NULL)
    {
      GTORCH_CUDA_APART; /* a lane's first work may be part of a capture */

      if (!gtorch_cuda_device_activate (device, NULL))
        return;
      g_mutex_lock (&device->lock);
      if (lane->sites == NULL
          && gtorch_cuda.cuMemHostAlloc ((void **) &cell, sizeof *cell, CU_MEMHOSTALLOC_PORTABLE)
                 == CUDA_SUCCESS)
        {
          *cell = number - 1;
          g_atomic_pointer_set (&lane->cell, cell);
          g_atomic_pointer_set (&lane->sites, g_new0 (GTorchSite, GTORCH_CUDA_N_NOTES));
        }
      g_mutex_unlock (&device->lock);
      if (lane->sites == NULL)
        return;
    }
  gtorch_site_take (&site);
  g_mutex_lock (&device->event_lock);
  lane->sites[number % GTORCH_CUDA_N_NOTES] = site;
  g_mutex_unlock (&device->event_lock);
}

static void
take_number (Open *piece)
{
  piece->number = __atomic_add_fetch (&piece->lane->enqueued, 1, __ATOMIC_RELAXED);
  set_note (piece->lane, piece->number,
            gtorch_cuda_lane_capture (piece->lane) == NULL ? piece->what : NULL);
  if (gtorch_is_checking (GTORCH_CHECK_ERRORS))
    set_site (piece->lane, piece->number);
}

void
gtorch_cuda_note_begin (GTorchCudaLane *lane, const gchar *what)
{
  Open *last = n_open > 0 ? &pieces[n_open - 1] : NULL;

  if (last != NULL && (last->lane == lane || n_open == MAX_OPEN))
    {
      last->depth++;
      return;
    }
  last = &pieces[n_open++];
  *last = (Open){ .lane = lane, .what = what, .depth = 1 };
  take_number (last);
}

void
gtorch_cuda_note_next (GTorchCudaLane *lane)
{
  take_number (&pieces[n_open - 1]);
}

gboolean
gtorch_cuda_note_end (GTorchCudaLane *lane, gboolean result)
{
  Open *last = &pieces[n_open - 1];

  if (--last->depth > 0)
    return result;
  n_open--;
  if (G_UNLIKELY (!result))
    set_note (lane, last->number, NULL);
  else if (gtorch_is_checking (GTORCH_CHECK_ERRORS) && g_atomic_pointer_get (&lane->cell) != NULL
           && gtorch_cuda_lane_capture (lane) == NULL)
    gtorch_cuda.cuStreamWriteValue32 (lane->handle, (CUdeviceptr) (guintptr) lane->cell,
                                      last->number, 0);
  return result;
}

void
gtorch_cuda_note_done (GTorchCudaLane *lane, guint64 number)
{
  guint64 former = __atomic_load_n (&lane->done, __ATOMIC_RELAXED);

  while (number > former
         && !__atomic_compare_exchange_n (&lane->done, &former, number, TRUE, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED))
    ;
}

/* --- reading notes --- */

/* Returns the name of the operation with this number, or NULL if it was not enqueued or its note was
 * overwritten. */
static const gchar *
get_note (GTorchCudaLane *lane, guint64 number)
{
  GTorchCudaNote *note = &lane->notes[number % GTORCH_CUDA_N_NOTES];
  const gchar *what = __atomic_load_n (&note->what, __ATOMIC_ACQUIRE);

  return __atomic_load_n (&note->number, __ATOMIC_ACQUIRE) == number ? what : NULL;
}

/* Describes the pieces of work from the first that is not known to be complete to the last that was
 * enqueued. */
static void
describe_lane (GTorchCudaLane *lane, GPtrArray *parts, gboolean *is_vague)
{
  guint64 last = gtorch_cuda_lane_enqueued (lane);
  guint64 done = __atomic_load_n (&lane->done, __ATOMIC_RELAXED), first, number;
  const gchar *first_what = NULL, *last_what = NULL;
  const guint32 *cell =
      gtorch_is_checking (GTORCH_CHECK_ERRORS) ? g_atomic_pointer_get (&lane->cell) : NULL;
  guint64 n = 0;

  if (cell != NULL)
    done = MAX (done, last - (guint32) (last - __atomic_load_n (cell, __ATOMIC_ACQUIRE)));
  first = last > GTORCH_CUDA_N_NOTES ? last - GTORCH_CUDA_N_NOTES + 1 : 1;
  for (number = MAX (first, done + 1), first = 0; number <= last; number++)
    {
      const gchar *what = get_note (lane, number);

      if (what == NULL)
        continue;
      n++;
      if (first_what == NULL)
        {
          first_what = what;
          first = number;
        }
      last_what = what;
      if (cell != NULL)
        break;
    }
  if (n == 0)
    return;
  if (cell != NULL)
    {
      g_autofree gchar *site = NULL;
      GTorchSite copy;

      g_mutex_lock (&lane->device->event_lock);
      copy = lane->sites[first % GTORCH_CUDA_N_NOTES];
      g_mutex_unlock (&lane->device->event_lock);
      site = gtorch_site_to_string (&copy);
      g_ptr_array_add (parts,
                       g_strdup_printf (_ ("%s (work %" PRIu64 " of stream %u, called by %s)"),
                                        first_what, first, lane->index, site));
    }
  else if (n == 1)
    g_ptr_array_add (parts, g_strdup_printf (_ ("%s (work %" PRIu64 " of stream %u)"), first_what,
                                             first, lane->index));
  else
    {
      *is_vague = TRUE;
      g_ptr_array_add (parts, g_strdup_printf (_ ("the operations from %s to %s (works %" PRIu64
                                                  " to %" PRIu64 " of stream %u)"),
                                               first_what, last_what, first, last, lane->index));
    }
}

/* --- failed devices --- */

static gboolean
is_final (CUresult result)
{
  switch ((gint) result)
    {
    case 214: /* uncorrectable memory error */
    case 220: /* uncorrectable NVLink error */
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case 702: /* timeout */
    case 709: /* context destroyed */
    case 710: /* assertion */
    case 714: /* hardware stack error */
    case 715: /* illegal instruction */
    case 716: /* misaligned address */
    case 717: /* invalid address space */
    case 718: /* invalid program counter */
    case CUDA_ERROR_LAUNCH_FAILED:
    case 999: /* unknown error */
      return TRUE;
    default:
      return FALSE;
    }
}

static void
fail (GTorchCudaDevice *device, CUresult result)
{
  GTorchDevice *base = (GTorchDevice *) device;
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  const gchar *name = NULL, *text = NULL;
  gboolean is_vague = FALSE;
  GTorchCudaLane *lane;
  GString *message;
  guint i;

  for (lane = g_atomic_pointer_get (&device->newest); lane != NULL; lane = lane->next)
    describe_lane (lane, parts, &is_vague);
  gtorch_cuda.cuGetErrorName (result, &name);
  gtorch_cuda.cuGetErrorString (result, &text);
  message = g_string_new (NULL);
  g_string_append_printf (message, _ ("%s has failed and cannot be used any more: %s (%s, %d)"),
                          gtorch_device_name (base), text != NULL ? text : _ ("unknown error"),
                          name != NULL ? name : "?", result);
  for (i = 0; i < parts->len; i++)
    {
      const gchar *part = parts->pdata[parts->len - 1 - i];

      if (i > 0)
        g_string_append_printf (message, _ (" or in %s"), part);
      else if (is_vague)
        g_string_append_printf (message, _ (", in one of %s"), part);
      else
        g_string_append_printf (message, _ (", in %s"), part);
    }
  if (is_vague || (parts->len > 1 && !gtorch_is_checking (GTORCH_CHECK_ERRORS)))
    g_string_append (message, _ ("; run with GTORCH_CHECK=errors to know more"));
  gtorch_device_fail (base,
                      g_error_new_literal (GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST, message->str));
  g_string_free (message, TRUE);
}

gboolean
gtorch_cuda_check_devices (CUresult result, GError **error)
{
  GTorchCudaDevice *failed = NULL;
  CUcontext context = NULL;
  guint i;

  if (G_LIKELY (!is_final (result)) || gtorch_cuda_is_forked ())
    return TRUE;
  gtorch_cuda.cuCtxGetCurrent (&context);
  for (i = 0; i < GTORCH_CUDA_MAX_DEVICES; i++)
    {
      GTorchCudaDevice *device = gtorch_cuda_device_peek (i);
      GTorchCudaLane *lane = device != NULL ? g_atomic_pointer_get (&device->newest) : NULL;

      /* a NULL handle would mean the queue of the current context */
      while (lane != NULL
             && (gtorch_cuda_lane_is_closed (lane)
                 || (lane->handle == NULL && device->context != context)))
        lane = lane->next;
      if (lane == NULL)
        continue;
      if (gtorch_device_works ((GTorchDevice *) device, NULL))
        { /* every lane of a failed device returns the device's error */
          CUresult again = gtorch_cuda.cuStreamQuery (lane->handle);

          if (!is_final (again))
            continue;
          fail (device, again);
        }
      if (failed == NULL || device->context == context)
        failed = device;
    }
  return failed == NULL || gtorch_device_works ((GTorchDevice *) failed, error);
}
