/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The least rank of the list is the head. The others write to it that they COME, with their list, and wait
 * for what it decides: that all have AGREED, or that the group is REFUSED, and why. It decides once: when all
 * have come, when one differs, or when the time of one of them is over. A rank whose time is over, or that is
 * cancelled, does not just go: it writes that it LEAVES and waits a little for the decision, which may have
 * been made before. So nobody begins what another one has given up, unless a letter takes longer than GRACE.
 *
 * A refusal is written to all of the list, also to those that have not come: it is there when they come, and
 * they need not wait.
 *
 * All letters of a process are in one list, since several threads may be making groups. A letter is for the
 * meeting of the same number of the same group. Then MPI makes one group after the other, in the order in
 * which the heads agreed: a process that waits within MPI for the others of a group cannot make another one.
 * All that is static is protected by the lock of MPI. */

#include "config.h"

#include "distributed/gtorch-mpi-meeting-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-mpi-engine-private.h"

#define MESSAGE 512
#define TEXT    400 /* bytes of what is written in words */
#define LISTED  64  /* ranks that are written */
#define SHOWN   16  /* of a list in words */
#define GRACE   (800 * G_TIME_SPAN_MILLISECOND)

typedef enum
{
  COMES = 1,
  LEAVES,
  AGREED,
  REFUSED,
} Kind;

typedef enum
{
  TIMED_OUT,
  DIFFERS, /* or cancelled */
} Reason;

typedef struct
{
  gint32 kind, number, reason, n;
  gchar whole[GTORCH_MPI_ID], list[GTORCH_MPI_ID];
  gint32 ranks[LISTED]; /* the first of COMES */
  gchar text
      [TEXT]; /* of LEAVES: after how many seconds, nothing if it is cancelled; of REFUSED: why */
} Letter;

G_STATIC_ASSERT (sizeof (Letter) <= GTORCH_MPI_LETTER);

typedef struct
{
  gint from;
  Letter letter;
} Received;

typedef struct
{
  const GTorchMpiMeeting *given;
  const GTorchMpiTable *mpi;
  gchar list[GTORCH_MPI_ID];
  gint head;
  gboolean *has_come;
  guint n_missing;
  Kind outcome;  /* AGREED or REFUSED */
  guint64 order; /* of what was agreed in this process */
  Reason reason;
  gchar text[TEXT];
  gint64 left;            /* when this rank has written so */
  gchar failure[MESSAGE]; /* of MPI */
} Meeting;

static GQueue received = G_QUEUE_INIT;
static GList *meetings; /* Meeting: those under way, until MPI has made the group */
static guint64 n_agreed;
static GHashTable *refused; /* "WHOLE/NUMBER" of what this rank has refused as the head */

/* --- lists of ranks --- */

static gint
rank_at (const GTorchMpiMeeting *given, guint i)
{
  return given->ranks == NULL ? (gint) i : given->ranks[i];
}

/* -1: not in the list. */
static gint
position_of (const GTorchMpiMeeting *given, gint rank)
{
  guint i;

  for (i = 0; i < given->n; i++)
    if (rank_at (given, i) == rank)
      return (gint) i;
  return -1;
}

static void
digest (const gchar *text, gchar *id)
{
  g_autofree gchar *sum = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);

  g_strlcpy (id, sum, GTORCH_MPI_ID);
}

static void
find_ids (Meeting *self, GTorchMpiMeeting *given)
{
  g_autoptr (GString) text = g_string_new (NULL);
  guint i;

  for (i = 0; i < given->n; i++)
    g_string_append_printf (text, "%d ", rank_at (given, i));
  digest (text->str, self->list);
  g_string_append_printf (text, "/%d %s", given->number, given->whole);
  digest (text->str, given->id);
  self->head = rank_at (given, 0);
  for (i = 1; i < given->n; i++)
    self->head = MIN (self->head, rank_at (given, i));
}

static void
list_ranks (const GTorchMpiMeeting *given, gint32 *ranks)
{
  guint i;

  for (i = 0; i < MIN (given->n, LISTED); i++)
    ranks[i] = rank_at (given, i);
}

/* "[0, 1]" */
static gchar *
list_text (const gint32 *ranks, gint n)
{
  g_autoptr (GString) text = g_string_new ("[");
  gint i;

  for (i = 0; i < MIN (n, SHOWN); i++)
    g_string_append_printf (text, "%s%d", i > 0 ? ", " : "", ranks[i]);
  if (n > SHOWN)
    g_string_append_printf (text, _ (", … %d ranks"), n);
  g_string_append_c (text, ']');
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static gchar *
own_text (Meeting *self)
{
  gint32 ranks[LISTED];

  list_ranks (self->given, ranks);
  return list_text (ranks, (gint) self->given->n);
}

/* Cut between two characters. */
static void
set_text (gchar *to, const gchar *text)
{
  const gchar *end;

  g_strlcpy (to, text, TEXT);
  (void) g_utf8_validate (to, -1, &end);
  to[end - to] = '\0';
}

/* --- letters --- */

static void
post (Meeting *self, gint to, const Letter *letter)
{
  if (to != self->given->own && self->failure[0] == '\0')
    self->mpi->post (to, letter, sizeof *letter, self->failure, sizeof self->failure);
}

static Letter
begin_letter (Meeting *self, Kind kind)
{
  Letter letter = { .kind = kind, .number = self->given->number, .n = (gint) self->given->n };

  g_strlcpy (letter.whole, self->given->whole, sizeof letter.whole);
  g_strlcpy (letter.list, self->list, sizeof letter.list);
  return letter;
}

static void
post_refusal (Meeting *self, gint to, gint number, const gchar *text)
{
  Letter letter = begin_letter (self, REFUSED);

  letter.number = number;
  letter.reason = self->reason;
  set_text (letter.text, text);
  post (self, to, &letter);
}

static void
write_to_head (Meeting *self, Kind kind, gboolean is_cancelled)
{
  Letter letter = begin_letter (self, kind);

  list_ranks (self->given, letter.ranks);
  if (!is_cancelled)
    g_snprintf (letter.text, TEXT, "%g", self->given->timeout);
  post (self, self->head, &letter);
}

static void
agree (Meeting *self)
{
  self->outcome = AGREED;
  self->order = ++n_agreed;
}

static void
on_agreed (gint from, const Letter *letter)
{
  GList *link;

  for (link = meetings; link != NULL; link = link->next)
    {
      Meeting *one = link->data;

      if (one->head == from && one->given->number == letter->number && one->outcome == 0
          && strcmp (one->given->whole, letter->whole) == 0)
        agree (one);
    }
}

static void
receive (Meeting *self)
{
  gint is_there = 1;

  while (is_there && self->failure[0] == '\0')
    {
      Received *one = g_new0 (Received, 1);

      self->mpi->take (&one->from, &one->letter, sizeof one->letter, &is_there, self->failure,
                       sizeof self->failure);
      is_there = is_there && self->failure[0] == '\0';
      if (is_there && one->letter.kind == AGREED)
        on_agreed (one->from, &one->letter);
      else if (is_there)
        g_queue_push_tail (&received, g_steal_pointer (&one));
      g_free (one);
    }
}

/* --- deciding --- */

static void
refuse (Meeting *self, Reason reason, gchar *text)
{
  if (self->outcome == 0)
    {
      self->outcome = REFUSED;
      self->reason = reason;
      set_text (self->text, text);
    }
  g_free (text);
}

static void
refuse_missing (Meeting *self, const gchar *seconds)
{
  g_autoptr (GString) missing = g_string_new (NULL);
  g_autofree gchar *list = own_text (self);
  guint n = 0, i;

  for (i = 0; i < self->given->n && n <= SHOWN; i++)
    if (!self->has_come[i] && n++ < SHOWN)
      g_string_append_printf (missing, "%s%d", n > 1 ? ", " : "", rank_at (self->given, i));
  if (n > SHOWN)
    g_string_append (missing, ", …");
  refuse (self, TIMED_OUT,
          g_strdup_printf (n == 1
                               ? _ ("rank %s has not come to make the group of %s after %s seconds")
                               : _ ("ranks %s have not come to make the group of %s after %s "
                                    "seconds"),
                           missing->str, list, seconds));
}

static gchar *
cancelled_text (Meeting *self, gint rank)
{
  g_autofree gchar *list = own_text (self);

  return g_strdup_printf (_ ("rank %d has cancelled making the group of %s"), rank, list);
}

static void
on_leaves (Meeting *self, gint from, const Letter *letter)
{
  g_autofree gchar *list = own_text (self);

  if (letter->text[0] == '\0')
    refuse (self, DIFFERS, cancelled_text (self, from));
  else if (self->n_missing > 0)
    refuse_missing (self, letter->text);
  else
    refuse (self, TIMED_OUT,
            g_strdup_printf (_ ("rank %d has given up making the group of %s after %s seconds"),
                             from, list, letter->text));
}

/* Also to those of its list, which wait for this rank, too. */
static void
on_differs (Meeting *self, gint from, const Letter *letter)
{
  g_autofree gchar *own = own_text (self), *other = list_text (letter->ranks, letter->n);
  g_autofree gchar *text = NULL;
  gint i;

  if (letter->number != self->given->number)
    text =
        g_strdup_printf (_ ("the ranks differ: rank %d makes group %d of those that they make, of "
                            "%s, rank %d group %d, of %s"),
                         from, letter->number, other, self->given->own, self->given->number, own);
  else
    text = g_strdup_printf (_ ("the ranks differ: rank %d makes a group of %s, rank %d of %s"),
                            from, other, self->given->own, own);
  self->reason = DIFFERS;
  if (letter->number <= self->given->number)
    for (i = 0; i < MIN (letter->n, LISTED); i++)
      if (letter->number < self->given->number || letter->ranks[i] == from
          || position_of (self->given, letter->ranks[i]) < 0)
        post_refusal (self, letter->ranks[i], letter->number, text);
  /* a rank that has no part in the group is told, and does not stop the others */
  if (self->given->own == self->head && position_of (self->given, from) >= 0)
    refuse (self, DIFFERS, g_steal_pointer (&text));
}

static gchar *
key_of (const gchar *whole, gint number)
{
  return g_strdup_printf ("%s/%d", whole, number);
}

static gboolean
was_refused (const Letter *letter)
{
  g_autofree gchar *key = key_of (letter->whole, letter->number);

  return refused != NULL && g_hash_table_contains (refused, key);
}

/* Whether it has come to another meeting and does not wait there any longer. */
static gboolean
has_left (gint from, const Letter *letter)
{
  GList *link;

  for (link = received.head; link != NULL; link = link->next)
    {
      const Received *one = link->data;

      if (one->from == from && one->letter.kind == LEAVES && one->letter.number == letter->number
          && strcmp (one->letter.whole, letter->whole) == 0)
        return TRUE;
    }
  return FALSE;
}

/* Returns whether the letter is done with. */
static gboolean
look_at (Meeting *self, gint from, const Letter *letter)
{
  const GTorchMpiMeeting *given = self->given;
  const gint position = position_of (given, from);

  if (letter->kind == REFUSED)
    {
      if (letter->number == given->number && from == self->head)
        refuse (self, letter->reason, g_strndup (letter->text, TEXT - 1));
      return letter->number <= given->number;
    }
  if (letter->number > given->number)
    {
      /* it waits for a later meeting, and is not coming to this one */
      if (letter->kind == COMES && position >= 0 && given->own == self->head)
        on_differs (self, from, letter);
      return FALSE;
    }
  if (letter->number < given->number)
    {
      if (letter->kind == COMES && !was_refused (letter) && !has_left (from, letter))
        on_differs (self, from, letter);
    }
  else if (memcmp (letter->list, self->list, sizeof self->list) != 0)
    {
      if (letter->kind == COMES)
        on_differs (self, from, letter);
    }
  else if (position >= 0 && letter->kind == LEAVES)
    on_leaves (self, from, letter);
  else if (position >= 0 && !self->has_come[position])
    {
      self->has_come[position] = TRUE;
      self->n_missing--;
    }
  return TRUE;
}

static void
look_at_letters (Meeting *self)
{
  GList *link = received.head;

  while (link != NULL && self->outcome == 0)
    {
      GList *next = link->next;
      Received *one = link->data;

      if (strcmp (one->letter.whole, self->given->whole) == 0
          && look_at (self, one->from, &one->letter))
        {
          g_free (one);
          g_queue_delete_link (&received, link);
        }
      link = next;
    }
}

static void
tell_all (Meeting *self)
{
  const GTorchMpiMeeting *given = self->given;
  const Letter agreed = begin_letter (self, AGREED);
  guint i;

  for (i = 0; i < given->n; i++)
    if (self->outcome == AGREED)
      post (self, rank_at (given, i), &agreed);
    else
      post_refusal (self, rank_at (given, i), given->number, self->text);
  if (self->outcome == AGREED)
    return;
  if (refused == NULL)
    refused = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_hash_table_add (refused, key_of (given->whole, given->number));
}

/* --- waiting --- */

/* The time is over, or the call is cancelled; `now` was before the letters were looked at. */
static void
give_up (Meeting *self, gboolean is_cancelled, gint64 now)
{
  g_autofree gchar *seconds = g_strdup_printf ("%g", self->given->timeout);

  if (self->given->own == self->head && !is_cancelled)
    refuse_missing (self, seconds);
  else if (self->given->own == self->head)
    refuse (self, DIFFERS, cancelled_text (self, self->head));
  else if (self->left == 0)
    {
      write_to_head (self, LEAVES, is_cancelled);
      self->left = now;
    }
  else if (now > self->left + GRACE)
    {
      /* nobody has decided: it is not there */
      memset (self->has_come, TRUE, self->given->n * sizeof (gboolean));
      self->has_come[position_of (self->given, self->head)] = FALSE;
      refuse_missing (self, seconds);
    }
}

/* Returns whether the meeting is over. */
static gboolean
take_step (Meeting *self, gboolean is_first)
{
  const GTorchMpiMeeting *given = self->given;
  const gint64 now = g_get_monotonic_time ();
  const gboolean is_cancelled = g_cancellable_is_cancelled (given->cancellable);

  if (is_first)
    {
      meetings = g_list_prepend (meetings, self);
      if (given->own != self->head)
        write_to_head (self, COMES, FALSE);
    }
  receive (self);
  look_at_letters (self);
  if (self->outcome == 0 && given->own == self->head && self->n_missing == 0)
    agree (self);
  if (self->outcome == 0 && (is_cancelled || now > given->deadline))
    give_up (self, is_cancelled, now);
  if (self->outcome != 0 && given->own == self->head)
    tell_all (self);
  if (self->outcome == REFUSED || self->failure[0] != '\0')
    meetings = g_list_remove (meetings, self);
  return self->outcome != 0 || self->failure[0] != '\0';
}

/* Where it is its turn. Returns whether it was. */
static gboolean
make_comm (Meeting *self, gpointer *comm)
{
  const GTorchMpiMeeting *given = self->given;
  GList *link;

  receive (self);
  for (link = meetings; link != NULL; link = link->next)
    if (((Meeting *) link->data)->order != 0 && ((Meeting *) link->data)->order < self->order)
      return FALSE;
  if (self->failure[0] == '\0')
    self->mpi->comm_new (given->ranks, (gint) given->n,
                         (gint) (g_str_hash (given->id) & G_MAXINT16), comm, self->failure,
                         sizeof self->failure);
  meetings = g_list_remove (meetings, self);
  return TRUE;
}

static gboolean
set_failure (const gchar *failure, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("mpi: %s"), failure);
  return FALSE;
}

gboolean
gtorch_mpi_join (const GTorchMpiMeeting *meeting, GError **error)
{
  const GTorchMpiTable *mpi = gtorch_mpi_load (NULL);
  gchar failure[MESSAGE] = "";
  gint is_done = 0;
  guint n;

  for (n = 0;; n++)
    {
      const gboolean is_late = g_get_monotonic_time () > meeting->deadline;

      if (!gtorch_mpi_enter ())
        {
          gtorch_mpi_set_ended (error);
          return FALSE;
        }
      mpi->join (&is_done, failure, sizeof failure);
      gtorch_mpi_leave ();
      if (failure[0] != '\0')
        return set_failure (failure, error);
      if (is_done)
        return TRUE;
      if (g_cancellable_set_error_if_cancelled (meeting->cancellable, error))
        return FALSE;
      if (is_late)
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                       _ ("%s: rank %d waited %g seconds for the others to make the first group: "
                          "one has not come, or is gone"),
                       meeting->name, meeting->own, meeting->timeout);
          return FALSE;
        }
      gtorch_mpi_pause (n);
    }
}

static gboolean
report (Meeting *self, GError **error)
{
  if (self->failure[0] != '\0')
    return set_failure (self->failure, error);
  if (self->outcome == AGREED)
    return TRUE;
  if (g_cancellable_set_error_if_cancelled (self->given->cancellable, error))
    return FALSE;
  if (self->reason == TIMED_OUT)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "%s: %s", self->given->name, self->text);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "%s: %s", self->given->name, self->text);
  return FALSE;
}

gpointer
gtorch_mpi_meet (GTorchMpiMeeting *meeting, GError **error)
{
  g_autofree gboolean *has_come = g_new0 (gboolean, meeting->n);
  Meeting self = { .given = meeting, .mpi = gtorch_mpi_load (NULL), .has_come = has_come };
  gboolean is_over = FALSE, has_comm = FALSE;
  gpointer comm = NULL;
  guint n;

  find_ids (&self, meeting);
  has_come[position_of (meeting, meeting->own)] = TRUE;
  self.n_missing = meeting->n - 1;
  for (n = 0; !has_comm; n++)
    {
      if (n > 0)
        gtorch_mpi_pause (n);
      if (!gtorch_mpi_enter ())
        {
          gtorch_mpi_set_ended (error);
          return NULL;
        }
      is_over = is_over || take_step (&self, n == 0);
      has_comm = is_over && (self.outcome != AGREED || make_comm (&self, &comm));
      gtorch_mpi_leave ();
    }
  return report (&self, error) ? comm : NULL;
}
