/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The terminal: its modes, its size, and keys. Drawn on is the alternate screen, so that what stood in the
 * terminal before is there again afterwards. Input is neither echoed nor collected in lines; keys that send
 * signals still do. Signals that end or stop the process give the terminal back first, by nothing but
 * functions that a handler of signals may call. */

#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "gtorch-top-private.h"

#define ESC "\033"

/* The alternate screen, without a cursor and without lines that go on in the next one. */
static const gchar begin[] = ESC "[?1049h" ESC "[?25l" ESC "[?7l" ESC "[2J";
static const gchar end[] = ESC "[?7h" ESC "[?25h" ESC "[?1049l";

static struct termios former;
static gboolean has_modes; /* the input is a terminal, whose modes are in `former` */
static volatile sig_atomic_t is_entered;
static gchar pending[16]; /* the beginning of a key's sequence */
static guint n_pending;

gboolean
top_screen_is_usable (void)
{
  const gchar *term = g_getenv ("TERM");

  return isatty (STDOUT_FILENO) && term != NULL && term[0] != '\0' && strcmp (term, "dumb") != 0;
}

/* --- called by handlers of signals --- */

static gboolean
put (const gchar *text, gsize length)
{
  while (length > 0)
    {
      gssize n = write (STDOUT_FILENO, text, length);

      if (n < 0 && errno != EINTR && errno != EAGAIN)
        return FALSE;
      text += MAX (n, 0);
      length -= MAX (n, 0);
    }
  return TRUE;
}

static void
take_terminal (void)
{
  struct termios modes = former;

  modes.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
  modes.c_cc[VMIN] = 0;
  modes.c_cc[VTIME] = 0;
  if (has_modes)
    tcsetattr (STDIN_FILENO, TCSADRAIN, &modes);
  put (begin, sizeof begin - 1);
  is_entered = 1;
}

void
top_screen_leave (void)
{
  if (!is_entered)
    return;
  is_entered = 0;
  put (end, sizeof end - 1);
  if (has_modes)
    tcsetattr (STDIN_FILENO, TCSADRAIN, &former);
}

static void
on_stop (int number)
{
  int problem = errno;

  top_screen_leave ();
  raise (SIGSTOP);
  /* Goes on here. A process in the background would be stopped again by what changes the terminal. */
  take_terminal ();
  raise (SIGWINCH); /* draws */
  errno = problem;
}

static void
on_crash (int number)
{
  top_screen_leave ();
  raise (number); /* the handler was for once only */
}

/* --- */

void
top_screen_enter (void)
{
  static const int crashes[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
  struct sigaction action = { .sa_handler = on_stop, .sa_flags = SA_RESTART };
  guint i;

  has_modes = isatty (STDIN_FILENO) && tcgetattr (STDIN_FILENO, &former) == 0;
  sigemptyset (&action.sa_mask);
  sigaction (SIGTSTP, &action, NULL);
  action.sa_handler = on_crash;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (i = 0; i < G_N_ELEMENTS (crashes); i++)
    sigaction (crashes[i], &action, NULL);
  take_terminal ();
}

void
top_screen_get_size (guint *width, guint *height)
{
  struct winsize size = { 0 };

  if (ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
    size = (struct winsize){ 0 };
  *width = size.ws_col > 0 ? size.ws_col : 80;
  *height = size.ws_row > 0 ? size.ws_row : 24;
}

void
top_screen_begin_picture (GString *picture)
{
  g_string_append (picture, ESC "[H");
}

void
top_screen_begin_style (GString *picture, const gchar *style)
{
  g_string_append_printf (picture, ESC "[%sm", style);
}

void
top_screen_end_style (GString *picture)
{
  g_string_append (picture, ESC "[0m");
}

/* Below the last line there is none: to go there would move the picture. */
void
top_screen_end_line (GString *picture, gboolean has_next)
{
  g_string_append (picture, has_next ? ESC "[K\r\n" : ESC "[K");
}

void
top_screen_end_picture (GString *picture)
{
  g_string_append (picture, ESC "[J");
}

gboolean
top_screen_show (const gchar *text)
{
  return put (text, strlen (text));
}

/* --- keys --- */

static const struct
{
  const gchar *sequence;
  TopKey key;
} keys[] = {
  { "q", TOP_KEY_QUIT },
  { "Q", TOP_KEY_QUIT },
  { "s", TOP_KEY_SORT },
  { "S", TOP_KEY_SORT },
  { "k", TOP_KEY_UP },
  { "j", TOP_KEY_DOWN },
  { "\014", TOP_KEY_REDRAW },
  { ESC "[A", TOP_KEY_UP },
  { ESC "[B", TOP_KEY_DOWN },
  { ESC "OA", TOP_KEY_UP },
  { ESC "OB", TOP_KEY_DOWN },
  { ESC "[5~", TOP_KEY_PAGE_UP },
  { ESC "[6~", TOP_KEY_PAGE_DOWN },
};

/* Whether what is pending may be the beginning of a sequence: ESC, then [ or O, numbers, and a letter. */
static gboolean
is_begun (void)
{
  guint i;

  if (pending[0] != '\033')
    return FALSE;
  if (n_pending == 1)
    return TRUE;
  if (pending[1] != '[' && pending[1] != 'O')
    return FALSE;
  for (i = 2; i < n_pending; i++)
    if (!g_ascii_isdigit (pending[i]) && pending[i] != ';')
      return FALSE;
  return n_pending < sizeof pending;
}

static TopKey
take_key (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (keys); i++)
    if (strlen (keys[i].sequence) == n_pending
        && memcmp (keys[i].sequence, pending, n_pending) == 0)
      return keys[i].key;
  return TOP_KEY_NONE;
}

gboolean
top_screen_read_keys (void (*func) (TopKey key, gpointer data), gpointer data)
{
  gchar buffer[256];
  gssize n = read (STDIN_FILENO, buffer, sizeof buffer), i;

  if (n < 0)
    return errno == EINTR || errno == EAGAIN;
  for (i = 0; i < n; i++)
    {
      TopKey key;

      if (buffer[i] == '\033')
        n_pending = 0; /* what came before was not finished */
      pending[n_pending++] = buffer[i];
      if (is_begun ())
        continue;
      key = take_key ();
      n_pending = 0;
      if (key != TOP_KEY_NONE)
        func (key, data);
    }
  return n > 0 || has_modes;
}
