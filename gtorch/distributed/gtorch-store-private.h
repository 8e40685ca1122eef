/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What all stores share. A call of the public interface is a request, a plain struct; a table, which is a
 * hash table of keys, answers it or says that it has to wait. Stores differ only in where the table is: in
 * this process, in a file that is read again, in another process. */

#pragma once

#include "distributed/gtorch-store.h"

G_BEGIN_DECLS

typedef enum
{
  GTORCH_STORE_SET,
  GTORCH_STORE_GET,   /* waits for the key */
  GTORCH_STORE_ADD,   /* value: a decimal number; number: what is added */
  GTORCH_STORE_WAIT,  /* waits for all keys */
  GTORCH_STORE_CHECK, /* number: whether all keys are there */
  GTORCH_STORE_COMPARE_SET, /* value replaces what equals expected; without expected: where there is no key */
  GTORCH_STORE_DELETE, /* number: whether the key was there */
  GTORCH_STORE_COUNT,  /* number: how many keys there are */
  GTORCH_STORE_APPEND,
  GTORCH_STORE_N_COMMANDS,
} GTorchStoreCommand;

typedef struct
{
  GTorchStoreCommand command;
  const gchar *const *keys; /* ends with NULL; one but for WAIT and CHECK, none for COUNT */
  GBytes *value;            /* SET, COMPARE_SET, APPEND */
  GBytes *expected;         /* COMPARE_SET; may be NULL */
  gint64 number;            /* ADD */
} GTorchStoreRequest;

typedef struct
{
  GBytes *value; /* GET, COMPARE_SET */
  gint64 number;
} GTorchStoreReply;

/* The virtual function of stores. The deadline is a time of g_get_monotonic_time (), G_MAXINT64 for none.
 * */
typedef gboolean (*GTorchStoreRun) (GTorchStore *self, const GTorchStoreRequest *request,
                                    gint64 deadline, GTorchStoreReply *reply,
                                    GCancellable *cancellable, GError **error);

#define GTORCH_STORE_MAX_KEY   4096               /* bytes */
#define GTORCH_STORE_MAX_KEYS  65536              /* of a request */
#define GTORCH_STORE_MAX_VALUE (64 * 1024 * 1024) /* bytes */

gboolean gtorch_store_run (GTorchStore *self, const GTorchStoreRequest *request, gint64 deadline,
                           GTorchStoreReply *reply, GCancellable *cancellable, GError **error);
gboolean gtorch_store_check_wait (gdouble timeout, GError **error);
/* The deadline of a call that begins now. */
gint64 gtorch_store_deadline (gdouble timeout);
const gchar *gtorch_store_command_name (GTorchStoreCommand command);
/* Sets the error of a store that was made without what it needs; returns FALSE. */
gboolean gtorch_store_refuse_incomplete (GTorchStore *self, const GTorchStoreRequest *request,
                                         GError **error);
/* Sets the error of a request that waited in vain. */
void gtorch_store_timed_out (const GTorchStoreRequest *request, GError **error);
void gtorch_store_reply_clear (GTorchStoreReply *reply);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchStoreReply, gtorch_store_reply_clear)

/* The table; not for several threads at a time. */
typedef struct _GTorchStoreTable GTorchStoreTable;

typedef enum
{
  GTORCH_STORE_ANSWERED,
  GTORCH_STORE_PENDING, /* a key is missing; ask again after a change */
  GTORCH_STORE_FAILED,
} GTorchStoreAnswer;

GTorchStoreTable *gtorch_store_table_new (void);
void gtorch_store_table_free (GTorchStoreTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchStoreTable, gtorch_store_table_free)
GTorchStoreAnswer gtorch_store_table_apply (GTorchStoreTable *table,
                                            const GTorchStoreRequest *request,
                                            GTorchStoreReply *reply, GError **error);
gboolean gtorch_store_command_changes (GTorchStoreCommand command);

/* Requests and replies as bytes, for files and sockets: a length in four bytes, the lowest first, and a
 * serialized GVariant, whose parser is made for data that nobody has checked. */
#define GTORCH_STORE_HEADER 4

typedef struct
{
  GTorchStoreRequest request;
  GVariant *variant; /* owns the strings */
} GTorchStoreParsed;

GBytes *gtorch_store_frame_request (const GTorchStoreRequest *request);
GBytes *gtorch_store_frame_reply (const GTorchStoreReply *reply, const GError *error);
/* The length of the body behind a header, or -1 with an error. */
gssize gtorch_store_frame_length (const guint8 *header, GError **error);
gboolean gtorch_store_parse_request (GBytes *body, GTorchStoreParsed *parsed, GError **error);
void gtorch_store_parsed_clear (GTorchStoreParsed *parsed);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchStoreParsed, gtorch_store_parsed_clear)
/* FALSE also if the other side has reported an error, which is then that of this call. */
gboolean gtorch_store_parse_reply (GBytes *body, GTorchStoreReply *reply, GError **error);

/* How both sides of a connection prove that they know the token: each sends random bytes, and a keyed hash
 * of those of both. The token itself is not sent. */
#define GTORCH_STORE_GREETING 40 /* the magic and 32 random bytes */
#define GTORCH_STORE_PROOF    32

void gtorch_store_greeting (guint8 *greeting);
gboolean gtorch_store_is_greeting (const guint8 *greeting);
void gtorch_store_proof (const gchar *token, const gchar *side, const guint8 *server,
                         const guint8 *client, guint8 *proof);
gboolean gtorch_store_proofs_equal (const guint8 *a, const guint8 *b);

/* The table in a thread of its own behind a listening socket. */
typedef struct _GTorchStoreServer GTorchStoreServer;

GTorchStoreServer *gtorch_store_server_new (const gchar *host, guint16 port, const gchar *token,
                                            GError **error);
guint16 gtorch_store_server_get_port (GTorchStoreServer *self);
void gtorch_store_server_free (GTorchStoreServer *self);

G_END_DECLS
