/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Call sites in the program.
 *
 * An unwinder interprets tables for each frame, which takes longer than the work for which the call site is
 * noted. But below a given return address the stack always looks the same: the next return address is at a
 * fixed distance. Each thread caches these distances as the unwinder finds them, and walks the stack by
 * itself as far as the cache reaches. It falls back to the unwinder when two addresses follow each other
 * for the first time, until a distance has been confirmed a few times, and always for functions whose frame
 * size varies: addresses left by older calls could be found where such frames end. */

#include "config.h"

#include "base/gtorch-check-private.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <unwind.h>

#define SHOWN           4
#define SHOWN_OF_STATIC 12 /* some frames are the library's own */

/* --- the unwinder --- */

typedef struct
{
  gpointer first; /* return address at which the walk begins, or NULL */
  guint n;
  gpointer pcs[GTORCH_SITE_FRAMES + 1];
  guintptr tops[GTORCH_SITE_FRAMES + 1]; /* canonical frame address of each frame */
} Walk;

static _Unwind_Reason_Code
walk_step (struct _Unwind_Context *context, gpointer data)
{
  Walk *walk = data;
  gpointer pc = (gpointer) _Unwind_GetIP (context);

  if (pc == NULL || walk->n == G_N_ELEMENTS (walk->pcs))
    return _URC_END_OF_STACK;
  if (walk->n == 0 && walk->first != NULL && pc != walk->first)
    return _URC_NO_REASON;
  walk->pcs[walk->n] = pc;
  walk->tops[walk->n++] = _Unwind_GetCFA (context);
  return _URC_NO_REASON;
}

static G_GNUC_NO_INLINE void
walk_stack (Walk *walk, gpointer first)
{
  walk->first = first;
  walk->n = 0;
  _Unwind_Backtrace (walk_step, walk);
}

static void
set_site (GTorchSite *site, const Walk *walk)
{
  guint n = MIN (walk->n, GTORCH_SITE_FRAMES);

  memcpy (site->frames, walk->pcs, n * sizeof site->frames[0]);
  if (n < GTORCH_SITE_FRAMES)
    site->frames[n] = NULL;
}

/* --- cached frames --- */

#ifdef __x86_64__

#define FRAMES_BITS 11
#define PAIRS_BITS  12
#define PROBES      8
#define ENOUGH      3 /* confirmations needed before a frame size is trusted */
#define MOST_STACK  (G_GUINT64_CONSTANT (1) << 28)

#define IS_LAST  0  /* outermost frame: nothing is found beyond it */
#define IS_VAGUE -1 /* frame size varies: only the unwinder knows it */

typedef struct
{
  guintptr pc;
  /* Frame size of the function, measured from where it makes the call; or IS_LAST or IS_VAGUE. */
  gint32 size;
  guint32 n_seen;
} Frame;

typedef struct
{
  guintptr pc, caller;
} Pair;

typedef struct
{
  guintptr low, high; /* bounds of the stack */
  Frame frames[1 << FRAMES_BITS];
  Pair pairs[1 << PAIRS_BITS];
} Known;

static __thread Known *known;

static void
forget (gpointer data)
{
  known = NULL;
  g_free (data);
}

static GPrivate owner = G_PRIVATE_INIT (forget);

static inline guint
hash (guintptr pc, guint bits)
{
  return (pc * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)) >> (64 - bits);
}

static inline guint
hash_pair (guintptr pc, guintptr caller)
{
  return hash (pc + (caller << 1 | caller >> 63), PAIRS_BITS);
}

/* Returns the entry of the address, or the one to be used for it. */
static inline Frame *
find_frame (Known *all, guintptr pc)
{
  guint home = hash (pc, FRAMES_BITS), i;

  for (i = 0; i < PROBES; i++)
    {
      Frame *frame = &all->frames[(home + i) % G_N_ELEMENTS (all->frames)];

      if (G_LIKELY (frame->pc == pc) || frame->pc == 0)
        return frame;
    }
  return &all->frames[home];
}

static inline Pair *
find_pair (Known *all, guintptr pc, guintptr caller)
{
  guint home = hash_pair (pc, caller), i;

  for (i = 0; i < PROBES; i++)
    {
      Pair *pair = &all->pairs[(home + i) % G_N_ELEMENTS (all->pairs)];

      if (G_LIKELY (pair->pc == pc && pair->caller == caller) || pair->pc == 0)
        return pair;
    }
  return &all->pairs[home];
}

static void
learn_frame (Known *all, guintptr pc, gint32 size)
{
  Frame *frame = find_frame (all, pc);

  if (frame->pc != pc)
    *frame = (Frame){ .pc = pc, .size = size };
  else if (frame->size != size)
    frame->size = IS_VAGUE;
  frame->n_seen = MIN (frame->n_seen + 1, ENOUGH);
}

static G_GNUC_NO_INLINE __attribute__ ((no_sanitize ("address", "thread"))) void
learn (Known *all, const Walk *walk, guintptr top)
{
  guint i;

  /* Ignores stacks that the program has made itself, and unwinders that count frames differently. */
  if (top < all->low || top > all->high || walk->n == 0 || walk->tops[0] != top)
    return;
  for (i = 0; i + 1 < walk->n; i++)
    {
      guintptr pc = (guintptr) walk->pcs[i], caller = (guintptr) walk->pcs[i + 1];
      gint64 size = walk->tops[i + 1] - walk->tops[i];

      if (size <= 0 || size > G_MAXINT32 || walk->tops[i + 1] > all->high
          || ((const guintptr *) walk->tops[i + 1])[-1] != caller)
        size = IS_VAGUE;
      learn_frame (all, pc, size);
      *find_pair (all, pc, caller) = (Pair){ .pc = pc, .caller = caller };
    }
  if (walk->n < G_N_ELEMENTS (walk->pcs))
    learn_frame (all, (guintptr) walk->pcs[i], IS_LAST);
}

static G_GNUC_NO_INLINE Known *
make_known (void)
{
  pthread_attr_t attributes;
  gsize size = 0;
  gpointer low = NULL;

  known = g_new0 (Known, 1);
  g_private_set (&owner, known);
  if (pthread_getattr_np (pthread_self (), &attributes) == 0)
    {
      pthread_attr_getstack (&attributes, &low, &size);
      pthread_attr_destroy (&attributes);
    }
  known->low = (guintptr) low;
  known->high = (guintptr) low + size;
  /* An unlimited stack reaches down to what is mapped now, which may later hold other mappings. */
  known->low = MAX (known->low, known->high - MIN (known->high, MOST_STACK));
  return known;
}

static inline __attribute__ ((no_sanitize ("address", "thread"))) gboolean
follow (Known *all, GTorchSite *site, guintptr pc, guintptr top)
{
  guint i;

  if (top < all->low)
    return FALSE;
  for (i = 0; i < GTORCH_SITE_FRAMES; i++)
    {
      const Frame *frame = find_frame (all, pc);
      const Pair *pair;
      guintptr caller;

      site->frames[i] = (gpointer) pc;
      if (G_UNLIKELY (frame->pc != pc || frame->size == IS_VAGUE || frame->n_seen < ENOUGH))
        return i == GTORCH_SITE_FRAMES - 1;
      if (frame->size == IS_LAST)
        {
          if (i + 1 < GTORCH_SITE_FRAMES)
            site->frames[i + 1] = NULL;
          return TRUE;
        }
      top += frame->size;
      if (G_UNLIKELY (top > all->high))
        return FALSE;
      caller = ((const guintptr *) top)[-1];
      pair = find_pair (all, pc, caller);
      if (G_UNLIKELY (pair->pc != pc || pair->caller != caller))
        return FALSE;
      pc = caller;
    }
  return TRUE;
}

G_GNUC_NO_INLINE void
gtorch_site_take (GTorchSite *site)
{
  gpointer pc = __builtin_return_address (0);
  guintptr top = (guintptr) __builtin_frame_address (0) + 2 * sizeof (gpointer);
  Known *all = known;
  Walk walk;

  if (G_LIKELY (all != NULL) && follow (all, site, (guintptr) pc, top))
    return;
  if (all == NULL)
    all = make_known ();
  walk_stack (&walk, pc);
  learn (all, &walk, top);
  if (walk.n == 0)
    walk_stack (&walk, NULL);
  set_site (site, &walk);
}

#else

G_GNUC_NO_INLINE void
gtorch_site_take (GTorchSite *site)
{
  Walk walk;

  walk_stack (&walk, __builtin_extract_return_addr (__builtin_return_address (0)));
  if (walk.n == 0)
    walk_stack (&walk, NULL);
  set_site (site, &walk);
}

#endif

/* --- names --- */

static gboolean
is_own (const Dl_info *info, const Dl_info *own, const Dl_info *program)
{
  /* In a statically linked program the library can be told apart only by symbol names. */
  if (own->dli_fbase != program->dli_fbase)
    return info->dli_fbase == own->dli_fbase;
  return info->dli_sname != NULL && g_str_has_prefix (info->dli_sname, "gtorch_");
}

gchar *
gtorch_site_to_string (const GTorchSite *site)
{
  GString *text = g_string_new (NULL);
  Dl_info own = { NULL }, program = { NULL };
  guint i, first = 0, shown = 0, most;

  dladdr ((void *) gtorch_site_to_string, &own);
  dladdr ((void *) getauxval (AT_ENTRY), &program);
  for (i = 0; i < GTORCH_SITE_FRAMES && site->frames[i] != NULL; i++)
    {
      Dl_info info;

      if (dladdr (site->frames[i], &info) != 0 && is_own (&info, &own, &program))
        first = i + 1;
    }
  if (first == i || site->frames[first] == NULL) /* called from the library's own threads */
    first = MIN (i, 1);
  most = own.dli_fbase == program.dli_fbase ? SHOWN_OF_STATIC : SHOWN;
  for (i = first; i < GTORCH_SITE_FRAMES && site->frames[i] != NULL && shown < most; i++)
    {
      g_autofree gchar *file = NULL;
      Dl_info info;

      if (dladdr (site->frames[i], &info) == 0) /* code generated at run time */
        continue;
      file = g_path_get_basename (info.dli_fname);
      g_string_append_printf (text, "%s%s (%s+0x%zx)", shown++ > 0 ? ", " : "",
                              info.dli_sname != NULL ? info.dli_sname : "?", file,
                              (gsize) ((char *) site->frames[i] - (char *) info.dli_fbase));
    }
  if (shown == 0)
    g_string_append_c (text, '?');
  return g_string_free (text, FALSE);
}

gchar *
gtorch_site_dup_function (const GTorchSite *site)
{
  Dl_info own = { NULL }, program = { NULL };
  const gchar *name = NULL;
  guint i;

  dladdr ((void *) gtorch_site_dup_function, &own);
  dladdr ((void *) getauxval (AT_ENTRY), &program);
  for (i = 0; i < GTORCH_SITE_FRAMES && site->frames[i] != NULL; i++)
    {
      Dl_info info;

      if (dladdr (site->frames[i], &info) != 0 && is_own (&info, &own, &program)
          && info.dli_sname != NULL)
        name = info.dli_sname;
    }
  return g_strdup (name);
}
