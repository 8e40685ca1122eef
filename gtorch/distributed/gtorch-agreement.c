/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Each meeting of the ranks has three keys: the lines of those that have come, their number, and a verdict,
 * which is set once. Who comes last sets it to “ok”, who has waited in vain to what has happened. All ranks,
 * also those that come later, go by the verdict that is there, so that none begins an operation that others
 * have given up. The keys of a meeting are deleted by rank 0 when all have come to the next. */

#include "config.h"

#include "distributed/gtorch-agreement-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "device/gtorch-device.h"
#include "distributed/gtorch-hash-store.h"
#include "distributed/gtorch-store-private.h"
#include "distributed/gtorch-tcp-store.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-hold-private.h"

#define OK      "ok"
#define ADDRESS 1024 /* bytes of the address of a store, or of what was wrong */

struct _GTorchAgreement
{
  GTorchStore *store;
  gchar *
      name; /* what the keys begin with: "2" for the second group of all, "2.1" for its first part */
  gint rank, size;
  guint64 n_meetings;
  gchar *former; /* the last meeting, whose keys are there yet */
  GMutex lock;
  GHashTable *
      n_messages; /* gchar * -> number; protected by the lock: messages may be of several threads */
};

static GTorchAgreement *
make (GTorchStore *store, gchar *name, gint rank, gint size)
{
  GTorchAgreement *self = g_new0 (GTorchAgreement, 1);

  self->store = g_object_ref (store);
  self->name = name;
  self->rank = rank;
  self->size = size;
  g_mutex_init (&self->lock);
  self->n_messages = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return self;
}

/* Counted by rank: several ranks may be threads of one process. */
GTorchAgreement *
gtorch_agreement_new (GTorchStore *store, gint rank, gint size, GCancellable *cancellable,
                      GError **error)
{
  g_autofree gchar *key = g_strdup_printf ("gtorch-groups-of-%d", rank);
  gint64 number;

  if (!gtorch_store_add (store, key, 1, &number, cancellable, error))
    return NULL;
  return make (store, g_strdup_printf ("%" PRId64, number), rank, size);
}

GTorchAgreement *
gtorch_agreement_new_part (GTorchAgreement *whole, gint number, gint rank, gint size)
{
  return make (whole->store, g_strdup_printf ("%s.%d", whole->name, number), rank, size);
}

void
gtorch_agreement_free (GTorchAgreement *self)
{
  g_hash_table_unref (self->n_messages);
  g_mutex_clear (&self->lock);
  g_object_unref (self->store);
  g_free (self->former);
  g_free (self->name);
  g_free (self);
}

const gchar *
gtorch_agreement_get_name (GTorchAgreement *self)
{
  return self->name;
}

/* --- meetings --- */

typedef struct
{
  gchar *lines, *count, *verdict;
} Keys;

static void
keys_clear (Keys *keys)
{
  g_free (keys->lines);
  g_free (keys->count);
  g_free (keys->verdict);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Keys, keys_clear)

static Keys
keys_of (const gchar *meeting)
{
  return (Keys){ g_strconcat (meeting, "/calls", NULL), g_strconcat (meeting, "/n", NULL),
                 g_strconcat (meeting, "/verdict", NULL) };
}

static GBytes *
bytes_of (const gchar *text)
{
  return g_bytes_new (text, strlen (text));
}

static gchar *
text_of (GBytes *bytes)
{
  return g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
}

/* The calls by rank, NULL for those who have not come: “RANK TAB CALL” in each line. */
static gchar **
read_lines (GTorchAgreement *self, const gchar *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  gchar **calls = g_new0 (gchar *, self->size + 1);
  guint i;

  for (i = 0; lines[i] != NULL; i++)
    {
      gchar *tab = strchr (lines[i], '\t');
      const gint64 rank = g_ascii_strtoll (lines[i], NULL, 10);

      if (tab == NULL || rank < 0 || rank >= self->size)
        continue;
      g_free (calls[rank]);
      calls[rank] = g_strdup (tab + 1);
    }
  return calls;
}

static void
calls_free (GTorchAgreement *self, gchar **calls)
{
  gint i;

  for (i = 0; calls != NULL && i < self->size; i++)
    g_free (calls[i]);
  g_free (calls);
}

/* Who is missing, in words. */
static gchar *
late_text (GTorchAgreement *self, const gchar *lines, const gchar *meeting, gdouble timeout)
{
  gchar **calls = read_lines (self, lines);
  g_autoptr (GString) missing = g_string_new (NULL);
  guint n = 0;
  gint i;

  for (i = 0; i < self->size; i++)
    if (calls[i] == NULL)
      g_string_append_printf (missing, "%s%d", n++ > 0 ? ", " : "", i);
  calls_free (self, calls);
  return g_strdup_printf (n == 1 ? _ ("rank %s has not come to %s of the group after %g seconds")
                                 : _ ("ranks %s have not come to %s of the group after %g seconds"),
                          missing->str, meeting, timeout);
}

/* Sets the verdict if there is none; returns what it is. */
static gchar *
judge (GTorchAgreement *self, const Keys *keys, const gchar *text, GCancellable *cancellable,
       GError **error)
{
  g_autoptr (GBytes) desired = bytes_of (text);
  g_autoptr (GBytes) found =
      gtorch_store_compare_set (self->store, keys->verdict, NULL, desired, cancellable, error);

  return found == NULL ? NULL : text_of (found);
}

static gchar *
wait_for_verdict (GTorchAgreement *self, const Keys *keys, const gchar *meeting, gdouble timeout,
                  GCancellable *cancellable, GError **error)
{
  const gchar *const verdict[] = { keys->verdict, NULL };
  g_autoptr (GError) local = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autofree gchar *lines = NULL, *text = NULL;

  if (gtorch_store_wait (self->store, verdict, timeout, cancellable, &local))
    {
      bytes = gtorch_store_get (self->store, keys->verdict, cancellable, error);
      return bytes == NULL ? NULL : text_of (bytes);
    }
  if (!g_error_matches (local, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
    {
      g_propagate_error (error, g_steal_pointer (&local));
      return NULL;
    }
  bytes = gtorch_store_get (self->store, keys->lines, cancellable, error);
  if (bytes == NULL)
    return NULL;
  lines = text_of (bytes);
  text = late_text (self, lines, meeting, timeout);
  return judge (self, keys, text, cancellable, error);
}

static void
forget (GTorchAgreement *self, const gchar *name)
{
  g_auto (Keys) keys = keys_of (name);
  const gchar *const list[] = { keys.lines, keys.count, keys.verdict };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (list); i++)
    (void) gtorch_store_delete_key (self->store, list[i], NULL, NULL, NULL);
}

/* Returns the calls of all ranks, or NULL. */
static gchar **
meet (GTorchAgreement *self, const gchar *operation, const gchar *meeting, const gchar *call,
      gdouble timeout, GCancellable *cancellable, GError **error)
{
  g_autofree gchar *name =
      g_strdup_printf ("gtorch-group-%s/%" PRIu64, self->name, ++self->n_meetings);
  g_autofree gchar *line = g_strdup_printf ("%d\t%s\n", self->rank, call);
  g_auto (Keys) keys = keys_of (name);
  g_autoptr (GBytes) own = bytes_of (line), all = NULL;
  g_autofree gchar *verdict = NULL, *lines = NULL;
  g_autoptr (GError) local = NULL;
  gint64 n = 0;

  if (gtorch_store_append (self->store, keys.lines, own, cancellable, &local)
      && gtorch_store_add (self->store, keys.count, 1, &n, cancellable, &local))
    verdict = n >= self->size
                  ? judge (self, &keys, OK, cancellable, &local)
                  : wait_for_verdict (self, &keys, meeting, timeout, cancellable, &local);
  if (verdict != NULL && strcmp (verdict, OK) == 0)
    all = gtorch_store_get (self->store, keys.lines, cancellable, &local);
  if (local != NULL)
    {
      g_set_error (error, local->domain, local->code,
                   _ ("%s: rank %d cannot reach the others by the store: %s"), operation,
                   self->rank, local->message);
      return NULL;
    }
  if (all == NULL)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "%s: %s", operation, verdict);
      return NULL;
    }
  if (self->rank == 0)
    {
      if (self->former != NULL)
        forget (self, self->former);
      g_free (self->former);
      self->former = g_steal_pointer (&name);
    }
  lines = text_of (all);
  return read_lines (self, lines);
}

/* --- calls --- */

gboolean
gtorch_agreement_has_root (const GTorchCollective *collective)
{
  return collective->kind == GTORCH_COLLECTIVE_BROADCAST
         || collective->kind == GTORCH_COLLECTIVE_SCATTER
         || collective->kind == GTORCH_COLLECTIVE_REDUCE
         || collective->kind == GTORCH_COLLECTIVE_GATHER;
}

gboolean
gtorch_agreement_is_reduction (const GTorchCollective *collective)
{
  return collective->kind == GTORCH_COLLECTIVE_ALL_REDUCE
         || collective->kind == GTORCH_COLLECTIVE_REDUCE
         || collective->kind == GTORCH_COLLECTIVE_REDUCE_SCATTER;
}

GTorchImpl *
gtorch_agreement_get_common_tensor (const GTorchCollective *collective)
{
  switch (collective->kind)
    {
    case GTORCH_COLLECTIVE_ALL_GATHER:
    case GTORCH_COLLECTIVE_GATHER:
    case GTORCH_COLLECTIVE_SEND:
      return collective->inputs->pdata[0];
    case GTORCH_COLLECTIVE_BARRIER:
      return NULL;
    default:
      return collective->outputs->len > 0 ? collective->outputs->pdata[0] : NULL;
    }
}

gchar *
gtorch_agreement_describe (const GTorchCollective *collective)
{
  g_autoptr (GString) text = g_string_new (collective->name);
  g_autoptr (GEnumClass) ops = g_type_class_ref (GTORCH_TYPE_REDUCE_OP);
  g_autoptr (GEnumClass) devices = g_type_class_ref (GTORCH_TYPE_DEVICE_TYPE);
  const GTorchImpl *impl = gtorch_agreement_get_common_tensor (collective);

  if (impl != NULL)
    {
      g_string_append_printf (text, " of %s", gtorch_dtype_infos[collective->dtype].name);
      if (collective->kind != GTORCH_COLLECTIVE_ALL_TO_ALL)
        g_string_append_printf (text, " %s", gtorch_impl_shape_str (impl));
      g_string_append_printf (text, " on %s",
                              g_enum_get_value (devices,
                                                gtorch_device_get_device_type (impl->device))
                                  ->value_nick);
    }
  if (gtorch_agreement_has_root (collective))
    g_string_append_printf (text,
                            collective->kind == GTORCH_COLLECTIVE_BROADCAST
                                    || collective->kind == GTORCH_COLLECTIVE_SCATTER
                                ? " from rank %d"
                                : " to rank %d",
                            collective->root);
  if (gtorch_agreement_is_reduction (collective))
    g_string_append_printf (text, " with %s", g_enum_get_value (ops, collective->op)->value_nick);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static void
append_counts (GString *text, const gint64 *counts, gint n)
{
  gint i;

  for (i = 0; i < n; i++)
    g_string_append_printf (text, "%s%" PRId64, i > 0 ? "," : "", counts[i]);
}

/* Behind a bar: what is sent to each rank, and what is expected of each. */
static gchar *
call_line (GTorchAgreement *self, const GTorchCollective *collective)
{
  g_autofree gchar *call = gtorch_agreement_describe (collective);
  g_autoptr (GString) line = g_string_new (call);

  if (collective->in_counts != NULL && collective->out_counts != NULL)
    {
      g_string_append_c (line, '|');
      append_counts (line, collective->in_counts, self->size);
      g_string_append_c (line, '|');
      append_counts (line, collective->out_counts, self->size);
    }
  return g_string_free (g_steal_pointer (&line), FALSE);
}

static gint64
count_of (gchar **parts, guint part, gint rank)
{
  g_auto (GStrv) counts = g_strsplit (g_strv_length (parts) > part ? parts[part] : "", ",", -1);

  return (gint) g_strv_length (counts) > rank ? g_ascii_strtoll (counts[rank], NULL, 10) : -1;
}

static gboolean
compare_counts (GTorchAgreement *self, const gchar *operation, gchar **calls, guint64 sequence,
                GError **error)
{
  gint from, to;

  for (from = 0; from < self->size; from++)
    {
      g_auto (GStrv) sender = g_strsplit (calls[from], "|", -1);

      for (to = 0; to < self->size; to++)
        {
          g_auto (GStrv) receiver = g_strsplit (calls[to], "|", -1);
          const gint64 sent = count_of (sender, 1, to), expected = count_of (receiver, 2, from);

          if (sent == expected)
            continue;
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                       _ ("%s: in call %" PRIu64 " of the group rank %d sends %" PRId64
                          " elements to rank %d, which expects %" PRId64),
                       operation, sequence, from, sent, to, expected);
          return FALSE;
        }
    }
  return TRUE;
}

static gboolean
compare (GTorchAgreement *self, const gchar *operation, gchar **calls, guint64 sequence,
         GError **error)
{
  gint i;

  for (i = 1; i < self->size; i++)
    {
      g_auto (GStrv) first = g_strsplit (calls[0], "|", 2), other = g_strsplit (calls[i], "|", 2);

      if (strcmp (first[0], other[0]) == 0)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("%s: the ranks differ: rank %d calls %s as call %" PRIu64
                      " of the group, rank 0 %s"),
                   operation, i, other[0], sequence, first[0]);
      return FALSE;
    }
  return strchr (calls[0], '|') == NULL || compare_counts (self, operation, calls, sequence, error);
}

/* Each rank says what it calls, so that one that is elsewhere does not pass for being here. */
gboolean
gtorch_agreement_meet (GTorchAgreement *self, const gchar *operation, gdouble timeout,
                       GCancellable *cancellable, GError **error)
{
  gchar **calls = meet (self, operation, operation, operation, timeout, cancellable, error);
  const gboolean result =
      calls != NULL && compare (self, operation, calls, self->n_meetings, error);

  calls_free (self, calls);
  return result;
}

/* The number of a message between two ranks with one tag. */
static guint
count_message (GTorchAgreement *self, const gchar *pair)
{
  guint number;

  g_mutex_lock (&self->lock);
  number = GPOINTER_TO_UINT (g_hash_table_lookup (self->n_messages, pair)) + 1;
  g_hash_table_insert (self->n_messages, g_strdup (pair), GUINT_TO_POINTER (number));
  g_mutex_unlock (&self->lock);
  return number;
}

/* A message has two ranks, of which the first to come goes on: it may be a send that the other waits for
 * after one of its own. The second compares. */
static gboolean
check_message (GTorchAgreement *self, const GTorchCollective *collective, GError **error)
{
  const gboolean is_send = collective->kind == GTORCH_COLLECTIVE_SEND;
  const GTorchImpl *impl = gtorch_agreement_get_common_tensor (collective);
  const gint from = is_send ? self->rank : collective->root,
             to = is_send ? collective->root : self->rank;
  g_autofree gchar *pair = g_strdup_printf ("%d-%d-%d", from, to, collective->tag);
  const guint number = count_message (self, pair);
  g_autofree gchar *key = g_strdup_printf ("gtorch-group-%s/%s/%u", self->name, pair, number);
  g_autofree gchar *line =
      g_strdup_printf ("%d\t%" PRId64 " elements of %s\n", self->rank, impl->numel,
                       gtorch_dtype_infos[collective->dtype].name);
  g_autoptr (GBytes) own = bytes_of (line), all = NULL;
  g_autofree gchar *lines = NULL;
  gboolean is_same = TRUE;
  gchar **calls;

  if (!gtorch_store_append (self->store, key, own, NULL, error)
      || (all = gtorch_store_get (self->store, key, NULL, error)) == NULL)
    return FALSE;
  lines = text_of (all);
  calls = read_lines (self, lines);
  if (calls[from] != NULL && calls[to] != NULL)
    {
      is_same = strcmp (calls[from], calls[to]) == 0;
      (void) gtorch_store_delete_key (self->store, key, NULL, NULL, NULL);
      if (!is_same)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("%s: rank %d sends %s to rank %d with the tag %d, which receives %s"),
                     collective->name, from, calls[from], to, collective->tag, calls[to]);
    }
  calls_free (self, calls);
  return is_same;
}

gboolean
gtorch_agreement_check (GTorchAgreement *self, const GTorchCollective *collective, guint64 sequence,
                        gdouble timeout, gboolean *is_lost, GError **error)
{
  g_autofree gchar *line = NULL, *meeting = NULL;
  gboolean result;
  gchar **calls;

  *is_lost = TRUE;
  if (collective->kind == GTORCH_COLLECTIVE_SEND || collective->kind == GTORCH_COLLECTIVE_RECEIVE)
    return collective->root < 0 || check_message (self, collective, error);
  line = call_line (self, collective);
  meeting = g_strdup_printf ("call %" PRIu64, sequence);
  calls = meet (self, collective->name, meeting, line, timeout, NULL, error);
  if (calls == NULL)
    return FALSE;
  *is_lost = FALSE; /* nobody has begun it */
  result = compare (self, collective->name, calls, sequence, error);
  calls_free (self, calls);
  return result;
}

/* --- a store where the program gave none --- */

/* One for all groups, which stays until the process ends: other ranks may be reading what the last meeting
 * of a group has left when rank 0 drops the group. */
static GMutex made_lock;
static GTorchStore *made_store;
static gchar *made_address; /* "HOST PORT TOKEN" */

/* Random bytes as text. */
static gchar *
make_token (void)
{
  guint8 greeting[GTORCH_STORE_GREETING];

  gtorch_store_greeting (greeting);
  return g_base64_encode (greeting + GTORCH_STORE_GREETING - 32, 32);
}

static void
keep (GTorchStore *store, const gchar *address)
{
  g_set_object (&made_store, store);
  g_free (made_address);
  made_address = g_strdup (address);
}

/* Sets the address, or "! MESSAGE". */
static GTorchStore *
serve (gchar *address, gdouble timeout, GCancellable *cancellable)
{
  g_autofree gchar *token = make_token ();
  g_autoptr (GTorchTcpStore) store = NULL;
  g_autoptr (GError) error = NULL;
  const gchar *host = g_get_host_name ();

  if (made_store != NULL)
    {
      g_strlcpy (address, made_address, ADDRESS);
      return g_object_ref (made_store);
    }
  store = gtorch_tcp_store_new (host, 0, 0, TRUE, timeout, FALSE, token, cancellable, &error);
  if (store == NULL)
    {
      g_snprintf (address, ADDRESS, "! %s", error->message);
      return NULL;
    }
  g_snprintf (address, ADDRESS, "%s %u %s", host, gtorch_tcp_store_get_port (store), token);
  keep (GTORCH_STORE (store), address);
  return GTORCH_STORE (g_steal_pointer (&store));
}

static GTorchStore *
join (const gchar *address, gdouble timeout, GCancellable *cancellable, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (address, " ", 3);
  g_autoptr (GTorchTcpStore) store = NULL;

  if (g_strcmp0 (address, made_address) == 0)
    return g_object_ref (made_store);
  if (g_strv_length (parts) != 3 || strcmp (parts[0], "!") == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("process_group: rank 0 could not serve a store: %s"), address);
      return NULL;
    }
  /* the name of this host need not be one that it can look up */
  store = gtorch_tcp_store_new (strcmp (parts[0], g_get_host_name ()) == 0 ? "localhost" : parts[0],
                                (guint) g_ascii_strtoull (parts[1], NULL, 10), 0, FALSE, timeout,
                                FALSE, parts[2], cancellable, error);
  if (store == NULL)
    return NULL;
  keep (GTORCH_STORE (store), address);
  return GTORCH_STORE (g_steal_pointer (&store));
}

GTorchStore *
gtorch_agreement_make_store (GTorchProcessGroup *group, gdouble timeout, GCancellable *cancellable,
                             GError **error)
{
  GTORCH_GROUP_CALL ("process_group");
  const gboolean is_server = gtorch_process_group_get_rank (group) == 0;
  g_autofree gchar *address = g_malloc0 (ADDRESS);
  g_autoptr (GTorchStore) store = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autoptr (GTorchWork) work = NULL;
  gchar *data;

  if (gtorch_process_group_get_size (group) == 1)
    return (GTorchStore *) gtorch_hash_store_new ();
  if (is_server)
    {
      g_mutex_lock (&made_lock);
      store = serve (address, timeout, cancellable);
      g_mutex_unlock (&made_lock);
    }
  tensor =
      gtorch_zeros (&(const gint64){ ADDRESS }, 1, GTORCH_DTYPE_UINT8, gtorch_device_cpu (), error);
  if (tensor == NULL)
    return NULL;
  data = gtorch_impl_data (gtorch_tensor_unwrap (tensor));
  memcpy (data, address, ADDRESS);
  work = gtorch_process_group_broadcast (group, tensor, 0, error);
  if (work == NULL || !gtorch_work_wait (work, -1, cancellable, error))
    return NULL;
  if (store != NULL)
    return g_steal_pointer (&store);
  memcpy (address, data, ADDRESS);
  address[ADDRESS - 1] = '\0';
  g_mutex_lock (&made_lock);
  store = join (address, timeout, cancellable, error);
  g_mutex_unlock (&made_lock);
  return g_steal_pointer (&store);
}
