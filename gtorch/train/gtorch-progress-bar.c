/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-progress-bar.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/gtorch-field-private.h"

/**
 * GTorchProgressBar:
 *
 * A line of a terminal that shows how far some work is, and how long it will take.
 *
 * ```
 * epoch 2/10  45% ━━━━━━━━━━━━━━╸               450/1000 0:12<0:15 37.4/s loss 0.312
 * ```
 *
 * It is written to the standard error, and only if that is a terminal: nothing gets into a pipe or a file.
 * The line fits the width of the terminal, and is written at most ten times a second. A [class@Trainer] shows
 * its progress in its [property@Trainer:progress-bar]. Functions may be called from any thread.
 *
 * ```c
 * g_autoptr (GTorchProgressBar) bar = gtorch_progress_bar_new ();
 *
 * gtorch_progress_bar_begin (bar, "epoch 1", 1000);
 * for (i = 0; i < 1000; i++)
 *   gtorch_progress_bar_update (bar, i + 1, NULL);
 * gtorch_progress_bar_end (bar);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchProgressBar
{
  GObject parent_instance;
  GMutex lock;
  gint fd;
  gboolean is_begun;
  gchar *title;
  gint64 position, total;
  gint64 begin_time, write_time; /* of the monotonic clock; 0: not written yet */
  gint64 first;                  /* the position of the first update, for the rate of the rest */
  gchar *text;
};

#define INTERVAL  (G_USEC_PER_SEC / 10)
#define MIN_WIDTH 8
#define MAX_WIDTH 40

G_DEFINE_TYPE (GTorchProgressBar, gtorch_progress_bar, G_TYPE_OBJECT)

static const GTorchField fields[] = {
  /**
   * GTorchProgressBar:fd:
   *
   * The file descriptor that is written to, if it is a terminal; 2, the standard error, by default.
   *
   * Since: 0.1
   */
  { "fd", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchProgressBar, fd), 2, NULL, GTORCH_FIELD_FIXED },
};

static void
gtorch_progress_bar_finalize (GObject *object)
{
  GTorchProgressBar *self = GTORCH_PROGRESS_BAR (object);

  gtorch_progress_bar_end (self);
  g_mutex_clear (&self->lock);
  g_free (self->title);
  g_free (self->text);
  G_OBJECT_CLASS (gtorch_progress_bar_parent_class)->finalize (object);
}

static void
gtorch_progress_bar_class_init (GTorchProgressBarClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_progress_bar_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_progress_bar_init (GTorchProgressBar *self)
{
  g_mutex_init (&self->lock);
}

/* --- the line --- */

static guint
width_of (gint fd)
{
  struct winsize size;

  return ioctl (fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* 1:02:03 or 2:03 */
static void
append_time (GString *line, gdouble seconds)
{
  const gint64 whole = seconds < 360000 ? (gint64) seconds : 359999;

  if (whole >= 3600)
    g_string_append_printf (line, "%d:%02d:%02d", (gint) (whole / 3600), (gint) (whole / 60 % 60),
                            (gint) (whole % 60));
  else
    g_string_append_printf (line, "%d:%02d", (gint) (whole / 60), (gint) (whole % 60));
}

static void
append_bar (GString *line, gdouble share, guint width, gboolean is_unicode)
{
  const guint halves = (guint) (share * width * 2 + 0.5);

  for (guint i = 0; i < width; i++)
    if (2 * i + 2 <= halves)
      g_string_append (line, is_unicode ? "━" : "#");
    else if (2 * i + 1 == halves)
      g_string_append (line, is_unicode ? "╸" : "-");
    else
      g_string_append_c (line, ' ');
}

/* Cuts the line to so many characters. */
static void
cut (GString *line, guint width)
{
  if ((guint) g_utf8_strlen (line->str, line->len) > width)
    g_string_truncate (line, g_utf8_offset_to_pointer (line->str, width) - line->str);
}

static gchar *
make_line (GTorchProgressBar *self, gint64 now, guint width)
{
  g_autoptr (GString) head = g_string_new (self->title);
  g_autoptr (GString) tail = g_string_new (NULL);
  const gdouble seconds = (now - self->begin_time) / (gdouble) G_USEC_PER_SEC;
  const gdouble rate = seconds > 0 ? (self->position - self->first) / seconds : 0;
  const gdouble share = self->total > 0 ? CLAMP ((gdouble) self->position / self->total, 0, 1) : 0;
  const gchar *charset;
  guint used;

  if (self->total > 0)
    {
      g_string_append_printf (head, " %3d%% ", (gint) (share * 100));
      g_string_append_printf (tail, " %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT " ", self->position,
                              self->total);
    }
  else
    g_string_append_printf (tail, " %" G_GINT64_FORMAT " ", self->position);
  append_time (tail, seconds);
  if (self->total > 0 && rate > 0)
    {
      g_string_append_c (tail, '<');
      append_time (tail, (self->total - self->position) / rate);
    }
  g_string_append_printf (tail, " %.*f/s", rate < 100, rate);
  if (self->text != NULL && *self->text != '\0')
    g_string_append_printf (tail, " %s", self->text);
  used = g_utf8_strlen (head->str, head->len) + g_utf8_strlen (tail->str, tail->len);
  if (self->total > 0 && used + MIN_WIDTH <= width)
    append_bar (head, share, MIN (width - used, MAX_WIDTH), g_get_charset (&charset));
  g_string_append (head, tail->str);
  cut (head, width);
  return g_string_free (g_steal_pointer (&head), FALSE);
}

static void
write_text (gint fd, const gchar *text)
{
  gsize n = strlen (text);

  while (n > 0)
    {
      const gssize written = write (fd, text, n);

      if (written < 0 && errno == EINTR)
        continue;
      if (written <= 0)
        return; /* a terminal that is gone shows nothing */
      text += written;
      n -= written;
    }
}

static void
show (GTorchProgressBar *self, gint64 now, const gchar *end)
{
  g_autofree gchar *line = NULL;
  g_autofree gchar *all = NULL;

  if (!isatty (self->fd))
    return;
  /* The last column stays empty: some terminals go to the next line behind it. */
  line = make_line (self, now, width_of (self->fd) - 1);
  all = g_strconcat ("\r", line, "\x1b[K", end, NULL);
  write_text (self->fd, all);
  self->write_time = now;
}

/**
 * gtorch_progress_bar_new:
 *
 * Creates a progress bar on the standard error.
 *
 * Returns: (transfer full): the progress bar
 *
 * Since: 0.1
 */
GTorchProgressBar *
gtorch_progress_bar_new (void)
{
  return g_object_new (GTORCH_TYPE_PROGRESS_BAR, NULL);
}

static gchar *
valid_line (const gchar *text)
{
  gchar *valid = g_utf8_make_valid (text != NULL ? text : "", -1);

  /* A line break, or an escape of the terminal, would break the line. */
  for (gchar *c = valid; *c != '\0'; c++)
    if (g_ascii_iscntrl (*c))
      *c = ' ';
  return valid;
}

static void
end (GTorchProgressBar *self)
{
  if (self->is_begun && self->write_time != 0)
    show (self, g_get_monotonic_time (), "\n");
  self->is_begun = FALSE;
}

/**
 * gtorch_progress_bar_begin:
 * @self: a progress bar
 * @title: (nullable): what the line begins with
 * @total: the position at the end, or 0 if it is not known
 *
 * Begins a line, and ends the one before.
 *
 * Since: 0.1
 */
void
gtorch_progress_bar_begin (GTorchProgressBar *self, const gchar *title, gint64 total)
{
  g_return_if_fail (GTORCH_IS_PROGRESS_BAR (self));
  g_mutex_lock (&self->lock);
  end (self);
  g_free (self->title);
  self->title = valid_line (title);
  g_clear_pointer (&self->text, g_free);
  self->total = MAX (total, 0);
  self->position = 0;
  self->first = -1;
  self->begin_time = g_get_monotonic_time ();
  self->write_time = 0;
  self->is_begun = TRUE;
  g_mutex_unlock (&self->lock);
}

/**
 * gtorch_progress_bar_update:
 * @self: a progress bar
 * @position: how far the work is
 * @text: (nullable): what the line ends with, such as a loss; %NULL keeps the former text
 *
 * Shows how far the work is, unless it did so less than a tenth of a second ago.
 *
 * Since: 0.1
 */
void
gtorch_progress_bar_update (GTorchProgressBar *self, gint64 position, const gchar *text)
{
  const gint64 now = g_get_monotonic_time ();

  g_return_if_fail (GTORCH_IS_PROGRESS_BAR (self));
  g_mutex_lock (&self->lock);
  if (self->is_begun)
    {
      if (self->first < 0)
        self->first = position > 1 ? position : 0;
      self->position = position;
      if (text != NULL)
        {
          g_free (self->text);
          self->text = valid_line (text);
        }
      if (self->write_time == 0 || now - self->write_time >= INTERVAL)
        show (self, now, "");
    }
  g_mutex_unlock (&self->lock);
}

/**
 * gtorch_progress_bar_end:
 * @self: a progress bar
 *
 * Shows the last position, and ends the line.
 *
 * Since: 0.1
 */
void
gtorch_progress_bar_end (GTorchProgressBar *self)
{
  g_return_if_fail (GTORCH_IS_PROGRESS_BAR (self));
  g_mutex_lock (&self->lock);
  end (self);
  g_mutex_unlock (&self->lock);
}

/**
 * gtorch_progress_bar_is_shown:
 * @self: a progress bar
 *
 * Tells whether the file descriptor is a terminal: otherwise nothing is written.
 *
 * Returns: %TRUE if it is a terminal
 *
 * Since: 0.1
 */
gboolean
gtorch_progress_bar_is_shown (GTorchProgressBar *self)
{
  g_return_val_if_fail (GTORCH_IS_PROGRESS_BAR (self), FALSE);
  return isatty (self->fd);
}

/**
 * gtorch_progress_bar_get_fd: (get-property fd)
 * @self: a progress bar
 *
 * Gets the file descriptor that is written to if it is a terminal.
 *
 * Returns: the file descriptor
 *
 * Since: 0.1
 */
gint
gtorch_progress_bar_get_fd (GTorchProgressBar *self)
{
  g_return_val_if_fail (GTORCH_IS_PROGRESS_BAR (self), -1);
  return self->fd;
}
