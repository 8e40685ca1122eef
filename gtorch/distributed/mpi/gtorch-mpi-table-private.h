/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the library calls of MPI. The types of mpi.h differ between implementations, so the functions are
 * in a module of their own, compiled against the one that is installed, and opened when a process first
 * needs it. No two of them are called at a time. */

#pragma once

#include <stddef.h>

#define GTORCH_MPI_ABI 5

typedef enum
{
  GTORCH_MPI_BROADCAST,      /* in = out */
  GTORCH_MPI_ALL_REDUCE,     /* in place, in out */
  GTORCH_MPI_REDUCE,         /* in place at the root, in out; elsewhere out is read */
  GTORCH_MPI_ALL_GATHER,     /* out_counts, out_offsets */
  GTORCH_MPI_GATHER,         /* the same at the root */
  GTORCH_MPI_SCATTER,        /* in_counts, in_offsets at the root */
  GTORCH_MPI_REDUCE_SCATTER, /* out_counts: what each gets */
  GTORCH_MPI_ALL_TO_ALL,     /* all four */
  GTORCH_MPI_SEND,
  GTORCH_MPI_RECEIVE,
  GTORCH_MPI_BARRIER,
} GTorchMpiKind;

typedef enum
{
  GTORCH_MPI_INT8,
  GTORCH_MPI_UINT8,
  GTORCH_MPI_INT16,
  GTORCH_MPI_INT32,
  GTORCH_MPI_INT64,
  GTORCH_MPI_FLOAT16,
  GTORCH_MPI_BFLOAT16,
  GTORCH_MPI_FLOAT32,
  GTORCH_MPI_FLOAT64,
  GTORCH_MPI_COMPLEX64,
  GTORCH_MPI_COMPLEX128,
  GTORCH_MPI_BOOL,
  GTORCH_MPI_N_TYPES,
} GTorchMpiType;

typedef enum
{
  GTORCH_MPI_SUM,
  GTORCH_MPI_PRODUCT,
  GTORCH_MPI_MIN,
  GTORCH_MPI_MAX,
  GTORCH_MPI_BAND,
  GTORCH_MPI_BOR,
  GTORCH_MPI_BXOR,
  GTORCH_MPI_N_OPS,
} GTorchMpiOp;

typedef struct
{
  GTorchMpiKind kind;
  GTorchMpiType type;
  GTorchMpiOp op;
  int root; /* or the other process of SEND and RECEIVE; -1 for any of RECEIVE */
  int tag;
  const void *in;
  void *out;
  int count; /* elements of in, or of out where there is no in */
  const int *in_counts, *in_offsets, *out_counts, *out_offsets; /* in elements, one for each rank */
} GTorchMpiTransfer;

/* Called before MPI ends, in the thread that ends it, maybe twice: waits for operations for a short
 * time unless is_aborted, and returns whether no other thread is in a call of MPI and none will make
 * another. */
typedef int (*GTorchMpiEnd) (int is_aborted);

#define GTORCH_MPI_LETTER 1024

/* All functions that can fail return 0, or write a message of at most size bytes. */
typedef struct
{
  int abi;
  int (*init) (int *rank, int *n_ranks, GTorchMpiEnd before_end, char *message, size_t size);
  const char *(*version) (void);
  /* Connects this process with all others, which call it as well, for the functions below, without waiting;
   * called again until it is done. */
  int (*join) (int *is_done, char *message, size_t size);
  /* Sends a copy of some bytes, GTORCH_MPI_LETTER at most, by a way of the library's own. */
  int (*post) (int to, const void *data, int n_bytes, char *message, size_t size);
  /* Takes the next one of those, of any rank, if there is one. */
  int (*take) (int *from, void *data, int n_bytes, int *is_there, char *message, size_t size);
  /* Called by all of these ranks of the world, ranks NULL for all, and waits for them. */
  int (*comm_new) (const int *ranks, int n, int tag, void **comm, char *message, size_t size);
  /* When all its operations have ended. */
  void (*comm_free) (void *comm);
  int (*start) (void *comm, const GTorchMpiTransfer *transfer, void **request, char *message,
                size_t size);
  /* Frees the request when it is done, or has failed. Of what was received it says who has sent it, and how
   * many bytes; nothing is written of a message that is too long. */
  int (*test) (void *request, int *is_done, int *source, long *n_bytes, char *message, size_t size);
  void (*abandon) (void *request);
} GTorchMpiTable;

#define GTORCH_MPI_TABLE "gtorch_mpi_table"
