/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/memory/gtorch-storage-private.h>
#include <gtorch/stream/gtorch-event.h>

G_BEGIN_DECLS

/* Memory of a device that other processes may use: gtorch-loan.c. */
typedef struct _GTorchLoan GTorchLoan;

/* --- in the process that has the memory --- */

/* Returns the loan of the storage, which it keeps; NULL with an error of the system. */
GTorchLoan *gtorch_loan_new (GTorchStorage *storage, GError **error);
/* Ends what gtorch_loan_new () began: the loan ends when no process has its file descriptor any more. */
void gtorch_loan_unref (GTorchLoan *loan);
guint64 gtorch_loan_get_number (const GTorchLoan *loan);
/* Returns the file descriptor for other processes, which is the loan's. */
gint gtorch_loan_get_fd (const GTorchLoan *loan);
/* Records the work of the stream in the event of the loan, behind what was recorded there before, and returns
 * the event's handle. Where there are no such events, waits for the stream and returns no bytes. */
GBytes *gtorch_loan_record (GTorchLoan *loan, GTorchStream *stream, GError **error);
/* Returns the storage of the loan with the number, and makes the stream wait for its event; NULL if there is
 * none. */
GTorchStorage *gtorch_loan_find (guint64 number, GTorchStream *stream, GError **error);
/* Returns how many loans there are. */
guint gtorch_loans_count (void);

/* --- in the other process --- */

/* Keeps the file descriptor, as a duplicate, until gtorch_loan_return () is called with the result.
 * Returns NULL with GTORCH_ERROR_FORMAT if it is not that of a loan, and GTORCH_ERROR_FAILED if its
 * process has ended. */
gpointer gtorch_loan_take (gint fd, GError **error);
void gtorch_loan_return (gpointer taken);

G_END_DECLS
