/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Zip archives, as NumPy and PyTorch write them: members that are stored or deflated, with 64-bit sizes.
 *
 * An archive is read from its end: the end record tells where the directory is, and the directory where the
 * members are. Only the directory's sizes count; local headers are read for where the data begin. All of it
 * may lie. So the directory must lie within the file and its records within the directory, members must not
 * share bytes, and a deflated member may not claim to be larger than deflate can make it (1032 times). Then
 * the memory that an archive takes is at most 1032 times its size, and within the limit of the caller. */

#include "config.h"

#include "io/gtorch-zip-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#define END_SIZE       22
#define END64_SIZE     56
#define LOCATOR_SIZE   20
#define RECORD_SIZE    46
#define LOCAL_SIZE     30
#define MAX_COMMENT    65535
#define MAX_RATIO      1032
#define METHOD_STORED  0
#define METHOD_DEFLATE 8

static void
member_clear (gpointer data)
{
  g_free (((GTorchZipMember *) data)->name);
}

void
gtorch_zip_free (GTorchZip *zip)
{
  g_clear_pointer (&zip->by_name, g_hash_table_unref);
  g_clear_pointer (&zip->members, g_array_unref);
  g_free (zip);
}

const GTorchZipMember *
gtorch_zip_find (const GTorchZip *zip, const gchar *name)
{
  gpointer place = g_hash_table_lookup (zip->by_name, name);

  return place != NULL
             ? &g_array_index (zip->members, GTorchZipMember, GPOINTER_TO_UINT (place) - 1)
             : NULL;
}

static guint16
get16 (const guint8 *at)
{
  return at[0] | at[1] << 8;
}

static guint32
get32 (const guint8 *at)
{
  return get16 (at) | (guint32) get16 (at + 2) << 16;
}

static guint64
get64 (const guint8 *at)
{
  return get32 (at) | (guint64) get32 (at + 4) << 32;
}

static void G_GNUC_PRINTF (3, 4)
    set_refusal (const GTorchZip *zip, GError **error, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, _ ("%s: the archive is damaged: %s"),
               zip->source->op, text);
}

#define refuse(...) (set_refusal (__VA_ARGS__), FALSE)

/* --- the directory --- */

typedef struct
{
  guint64 n, size, start; /* the number of records, and where they are */
} Directory;

/* Finds the end record, which a comment may follow. */
static gboolean
find_end (GTorchZip *zip, guint8 *end, guint64 *place, GCancellable *cancellable, GError **error)
{
  GTorchSource *source = zip->source;
  gsize n = MIN (source->size, END_SIZE + MAX_COMMENT);
  g_autofree guint8 *tail = NULL;
  gsize back;

  if (n < END_SIZE)
    return refuse (zip, error, _ ("it has %" PRIu64 " bytes"), source->size);
  tail = g_malloc (n);
  if (!gtorch_source_read (source, source->size - n, tail, n, cancellable, error))
    return FALSE;
  for (back = END_SIZE; back <= n; back++)
    {
      const guint8 *at = tail + n - back;

      if (memcmp (at, "PK\5\6", 4) != 0 || get16 (at + 20) != back - END_SIZE)
        continue;
      memcpy (end, at, END_SIZE);
      *place = source->size - back;
      return TRUE;
    }
  return refuse (zip, error,
                 _ ("it has no end record; perhaps it is cut short, or no zip archive"));
}

static gboolean
find_directory (GTorchZip *zip, Directory *directory, GCancellable *cancellable, GError **error)
{
  guint8 end[END_SIZE], locator[LOCATOR_SIZE], end64[END64_SIZE];
  guint64 place, last;

  if (!find_end (zip, end, &place, cancellable, error))
    return FALSE;
  *directory = (Directory){ get16 (end + 10), get32 (end + 12), get32 (end + 16) };
  last = place;
  if (get16 (end + 4) != get16 (end + 6) && get16 (end + 4) != 0xffff)
    return refuse (zip, error, _ ("it is a part of several"));
  if (place >= LOCATOR_SIZE)
    {
      if (!gtorch_source_read (zip->source, place - LOCATOR_SIZE, locator, LOCATOR_SIZE,
                               cancellable, error))
        return FALSE;
      if (memcmp (locator, "PK\6\7", 4) == 0)
        {
          last = get64 (locator + 8);
          if (last > place - LOCATOR_SIZE || place - LOCATOR_SIZE - last < END64_SIZE)
            return refuse (zip, error, _ ("its end record of 64 bits would be at %" PRIu64), last);
          if (!gtorch_source_read (zip->source, last, end64, END64_SIZE, cancellable, error))
            return FALSE;
          if (memcmp (end64, "PK\6\6", 4) != 0)
            return refuse (zip, error, _ ("there is no end record of 64 bits at %" PRIu64), last);
          *directory = (Directory){ get64 (end64 + 32), get64 (end64 + 40), get64 (end64 + 48) };
        }
    }
  if (directory->start > last || directory->size != last - directory->start)
    return refuse (zip, error,
                   _ ("its directory of %" PRIu64 " bytes at %" PRIu64 " does not end at %" PRIu64
                      ", where the end record is"),
                   directory->size, directory->start, last);
  if (directory->n > directory->size / RECORD_SIZE)
    return refuse (zip, error, _ ("a directory of %" PRIu64 " bytes has no %" PRIu64 " records"),
                   directory->size, directory->n);
  return TRUE;
}

/* Replaces sizes that do not fit into 32 bits by those of the extra field. */
static gboolean
read_extra (GTorchZip *zip, GTorchZipMember *member, const guint8 *extra, gsize n, GError **error)
{
  guint64 *wanted[3];
  guint n_wanted = 0, i;

  if (member->size == G_MAXUINT32)
    wanted[n_wanted++] = &member->size;
  if (member->packed == G_MAXUINT32)
    wanted[n_wanted++] = &member->packed;
  if (member->header == G_MAXUINT32)
    wanted[n_wanted++] = &member->header;
  while (n >= 4 && n_wanted > 0)
    {
      gsize length = get16 (extra + 2);

      if (length > n - 4)
        break;
      if (get16 (extra) == 1)
        {
          if (length < 8 * n_wanted)
            break;
          for (i = 0; i < n_wanted; i++)
            *wanted[i] = get64 (extra + 4 + 8 * i);
          return TRUE;
        }
      extra += 4 + length;
      n -= 4 + length;
    }
  return n_wanted == 0
         || refuse (zip, error, _ ("“%s” has no sizes of 64 bits"), gtorch_name_str (member->name));
}

static gboolean
check_member (GTorchZip *zip, const GTorchZipMember *member, guint flags, guint64 end,
              GError **error)
{
  const gchar *name = gtorch_name_str (member->name);

  if ((flags & 1) != 0 || (member->method != METHOD_STORED && member->method != METHOD_DEFLATE))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   (flags & 1) != 0 ? _ ("%s: “%s” of the archive is encrypted (method %u)")
                                    : _ ("%s: “%s” of the archive is compressed by method %u: 0 "
                                         "(stored) and 8 (deflate) are known"),
                   zip->source->op, name, member->method);
      return FALSE;
    }
  if (!g_utf8_validate (member->name, -1, NULL))
    return refuse (zip, error, _ ("the name “%s” is not UTF-8"), name);
  if (member->header > end || end - member->header < LOCAL_SIZE
      || end - member->header - LOCAL_SIZE < member->packed)
    return refuse (zip, error,
                   _ ("“%s” of %" PRIu64 " bytes at %" PRIu64
                      " does not end before the directory at %" PRIu64),
                   name, member->packed, member->header, end);
  if (member->method == METHOD_STORED ? member->size != member->packed
                                      : member->size / MAX_RATIO > member->packed)
    return refuse (zip, error, _ ("“%s” cannot have %" PRIu64 " bytes, made of %" PRIu64), name,
                   member->size, member->packed);
  return TRUE;
}

static gint
by_place (gconstpointer a, gconstpointer b)
{
  const GTorchZipMember *x = a, *y = b;

  return x->header < y->header ? -1 : x->header > y->header;
}

static gboolean
check_places (GTorchZip *zip, guint64 end, GError **error)
{
  GTorchZipMember *members = (GTorchZipMember *) (gpointer) zip->members->data;
  guint i;

  g_array_sort (zip->members, by_place);
  for (i = 0; i < zip->members->len; i++)
    {
      guint64 room;

      members[i].limit = i + 1 < zip->members->len ? members[i + 1].header : end;
      room = members[i].limit - members[i].header;
      if (room < LOCAL_SIZE || room - LOCAL_SIZE < members[i].packed)
        return refuse (zip, error, _ ("“%s” reaches into what follows it at %" PRIu64),
                       gtorch_name_str (members[i].name), members[i].limit);
      if (!g_hash_table_insert (zip->by_name, members[i].name, GUINT_TO_POINTER (i + 1)))
        return refuse (zip, error, _ ("“%s” appears twice"), gtorch_name_str (members[i].name));
    }
  return TRUE;
}

static gboolean
read_records (GTorchZip *zip, const Directory *directory, const guint8 *at, GError **error)
{
  gsize left = directory->size;
  guint64 i;

  for (i = 0; i < directory->n; i++)
    {
      GTorchZipMember member = { .name = NULL };
      gsize n_name, n_extra, n_comment;
      gboolean fits;

      if (left < RECORD_SIZE || memcmp (at, "PK\1\2", 4) != 0)
        return refuse (zip, error, _ ("record %" PRIu64 " of the directory is missing"), i);
      n_name = get16 (at + 28);
      n_extra = get16 (at + 30);
      n_comment = get16 (at + 32);
      left -= RECORD_SIZE;
      if (n_name + n_extra + n_comment > left)
        return refuse (zip, error, _ ("record %" PRIu64 " of the directory is cut short"), i);
      if (memchr (at + RECORD_SIZE, '\0', n_name) != NULL)
        return refuse (zip, error, _ ("record %" PRIu64 " has a name with a zero byte"), i);
      member.name = g_strndup ((const gchar *) at + RECORD_SIZE, n_name);
      member.method = get16 (at + 10);
      member.crc = get32 (at + 16);
      member.packed = get32 (at + 20);
      member.size = get32 (at + 24);
      member.header = get32 (at + 42);
      fits = read_extra (zip, &member, at + RECORD_SIZE + n_name, n_extra, error)
             && check_member (zip, &member, get16 (at + 8), directory->start, error);
      g_array_append_val (zip->members, member);
      if (!fits)
        return FALSE;
      at += RECORD_SIZE + n_name + n_extra + n_comment;
      left -= n_name + n_extra + n_comment;
    }
  return left == 0
         || refuse (zip, error, _ ("%zu bytes follow the records of the directory"), left);
}

GTorchZip *
gtorch_zip_new (GTorchSource *source, GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchZip) zip = g_new0 (GTorchZip, 1);
  g_autoptr (GBytes) records = NULL;
  Directory directory;

  zip->source = source;
  zip->members = g_array_new (FALSE, TRUE, sizeof (GTorchZipMember));
  g_array_set_clear_func (zip->members, member_clear);
  zip->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  if (!find_directory (zip, &directory, cancellable, error))
    return NULL;
  records = gtorch_source_read_bytes (source, directory.start, directory.size, cancellable, error);
  if (records == NULL || !read_records (zip, &directory, g_bytes_get_data (records, NULL), error)
      || !check_places (zip, directory.start, error))
    return NULL;
  return g_steal_pointer (&zip);
}

/* --- members --- */

/* Eight bytes at a time, by eight tables. */
guint32
gtorch_zip_crc (guint32 crc, gconstpointer data, gsize n)
{
  static guint32 tables[8][256];
  static gsize is_made = 0;
  const guint8 *at = data;

  if (g_once_init_enter (&is_made))
    {
      for (guint i = 0; i < 256; i++)
        {
          guint32 value = i;

          for (guint k = 0; k < 8; k++)
            value = value >> 1 ^ ((value & 1) != 0 ? 0xedb88320u : 0);
          tables[0][i] = value;
        }
      for (guint i = 0; i < 256; i++)
        for (guint k = 1; k < 8; k++)
          tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xff];
      g_once_init_leave (&is_made, 1);
    }
  crc = ~crc;
  for (; n >= 8; n -= 8, at += 8)
    {
      guint32 one = get32 (at) ^ crc, two = get32 (at + 4);

      crc = tables[7][one & 0xff] ^ tables[6][one >> 8 & 0xff] ^ tables[5][one >> 16 & 0xff]
            ^ tables[4][one >> 24] ^ tables[3][two & 0xff] ^ tables[2][two >> 8 & 0xff]
            ^ tables[1][two >> 16 & 0xff] ^ tables[0][two >> 24];
    }
  for (; n > 0; n--, at++)
    crc = crc >> 8 ^ tables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

static gboolean
find_data (GTorchZip *zip, const GTorchZipMember *member, guint64 *start, GCancellable *cancellable,
           GError **error)
{
  guint8 local[LOCAL_SIZE];

  if (!gtorch_source_read (zip->source, member->header, local, LOCAL_SIZE, cancellable, error))
    return FALSE;
  if (memcmp (local, "PK\3\4", 4) != 0 || get16 (local + 8) != member->method)
    return refuse (zip, error, _ ("“%s” does not begin at %" PRIu64),
                   gtorch_name_str (member->name), member->header);
  *start = member->header + LOCAL_SIZE + get16 (local + 26) + get16 (local + 28);
  if (*start > member->limit || member->limit - *start < member->packed)
    return refuse (zip, error, _ ("“%s” reaches into what follows it at %" PRIu64),
                   gtorch_name_str (member->name), member->limit);
  return TRUE;
}

static GBytes *
inflate (GTorchZip *zip, const GTorchZipMember *member, GBytes *packed, GCancellable *cancellable,
         GError **error)
{
  g_autoptr (GConverter) converter =
      G_CONVERTER (g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_RAW));
  g_autofree guint8 *memory = gtorch_source_allocate (zip->source, member->size, error);
  const gchar *name = gtorch_name_str (member->name);
  gsize n_packed, used = 0, made = 0;
  const guint8 *data = g_bytes_get_data (packed, &n_packed);
  guint8 after[16];

  if (memory == NULL)
    return NULL;
  while (TRUE)
    {
      g_autoptr (GError) reason = NULL;
      gboolean is_full = made == member->size;
      gsize n_read = 0, n_written = 0,
            room = is_full ? sizeof after : MIN (member->size - made, 1 << 24);
      GConverterResult result;

      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return NULL;
      result = g_converter_convert (converter, data + used, n_packed - used,
                                    is_full ? after : memory + made, room, G_CONVERTER_INPUT_AT_END,
                                    &n_read, &n_written, &reason);
      if (result == G_CONVERTER_ERROR)
        {
          set_refusal (zip, error, _ ("“%s” cannot be decompressed at byte %zu: %s"), name, made,
                       reason->message);
          return NULL;
        }
      used += n_read;
      made += n_written;
      if (made > member->size || (result != G_CONVERTER_FINISHED && n_read == 0 && n_written == 0))
        break;
      if (result == G_CONVERTER_FINISHED)
        {
          if (made == member->size && used == n_packed)
            return g_bytes_new_take (g_steal_pointer (&memory), made);
          break;
        }
    }
  set_refusal (zip, error,
               _ ("“%s” gives %zu%s bytes of %zu compressed ones, not %" PRIu64 " of %" PRIu64),
               name, MIN (made, member->size), made > member->size ? "…" : "", used, member->size,
               member->packed);
  return NULL;
}

GBytes *
gtorch_zip_read (GTorchZip *zip, const GTorchZipMember *member, gboolean *is_read_only,
                 GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;
  guint64 start;
  guint32 crc;

  if (!find_data (zip, member, &start, cancellable, error))
    return NULL;
  bytes = gtorch_source_read_bytes (zip->source, start, member->packed, cancellable, error);
  if (bytes == NULL)
    return NULL;
  *is_read_only = member->method == METHOD_STORED && gtorch_source_is_read_only (zip->source);
  if (member->method == METHOD_DEFLATE)
    {
      GBytes *whole = inflate (zip, member, bytes, cancellable, error);

      if (zip->source->bytes == NULL)
        zip->source->left += member->packed; /* which is freed now */
      g_bytes_unref (g_steal_pointer (&bytes));
      bytes = whole;
      if (bytes == NULL)
        return NULL;
    }
  else if (zip->source->is_mapped)
    return g_steal_pointer (&bytes);
  crc = gtorch_zip_crc (0, g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  if (crc != member->crc)
    {
      set_refusal (zip, error, _ ("the check sum of “%s” is %08x, not %08x"),
                   gtorch_name_str (member->name), crc, member->crc);
      return NULL;
    }
  return g_steal_pointer (&bytes);
}
