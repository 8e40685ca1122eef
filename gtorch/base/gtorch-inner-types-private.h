/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-error-private.h>
#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_MAX_DIMS    16
#define GTORCH_INLINE_DIMS 4 /* that a tensor has room for in itself */

/* The structs of the library's inside, for headers that only point to them. */
typedef struct _GTorchAutograd GTorchAutograd;
typedef struct _GTorchCapture GTorchCapture;
typedef struct _GTorchFence GTorchFence;
typedef struct _GTorchGraphExec GTorchGraphExec;
typedef struct _GTorchImpl GTorchImpl;
typedef struct _GTorchOpCall GTorchOpCall;
typedef struct _GTorchOpClass GTorchOpClass;
typedef struct _GTorchPool GTorchPool;
typedef struct _GTorchStorage GTorchStorage;
typedef struct _GTorchTimeline GTorchTimeline;

/* Where the current stream of a device has its work done. A backend defines the struct for itself; the CPU
 * has none and gets NULL. */
typedef struct _GTorchQueue GTorchQueue;

/* Computes the values of the outputs, or launches the work that will. A type of device has a table of
 * these by the id of the operation; NULL: it does not have the operation. */
typedef gboolean (*GTorchRun) (GTorchOpCall *call, GTorchQueue *queue, GError **error);

/* Answers what the host asks of a device before a call is launched, such as a size that depends on values.
 * The call has its inputs and attributes. What the answers are is up to the operation. */
typedef gboolean (*GTorchQuery) (GTorchOpCall *call, gint64 *answers, GError **error);

G_END_DECLS
