/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>
#include <string.h>

/* Conversions of the 16-bit floats to and from their bits; they round to nearest, ties to even. */

static inline float
gt_bfloat16_to_float (guint16 h)
{
  guint32 bits = (guint32) h << 16;
  float f;

  memcpy (&f, &bits, 4);
  return f;
}

static inline guint16
gt_bfloat16_from_float (float f)
{
  guint32 bits;

  memcpy (&bits, &f, 4);
  /* a rounded NaN must not become infinity */
  return (bits & 0x7fffffffu) > 0x7f800000u
             ? (guint16) ((bits >> 16) | 0x40)
             : (guint16) ((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

static inline guint32
gt_pick (gboolean condition, guint32 a, guint32 b)
{
  return b ^ ((a ^ b) & -(guint32) condition);
}

/* Integer operations and one float multiplication without branches, so that loops vectorise: the compiler
 * would turn a series of conditional expressions into branches. The float multiplication rescales the
 * exponent, which also handles subnormal numbers. */
static inline float
gt_half_to_float (guint16 h)
{
  guint32 sign = (guint32) (h & 0x8000) << 16;
  guint32 rest = (guint32) (h & 0x7fff) << 13;
  guint32 special = rest >= 0x0f800000u ? 0x7f800000u : 0; /* infinity or NaN */
  guint32 bits, mantissa = rest & 0x007fffffu;
  float f;

  memcpy (&f, &rest, 4);
  f *= 0x1p112f;
  memcpy (&bits, &f, 4);
  bits = special ? special | mantissa : bits;
  bits |= sign;
  memcpy (&f, &bits, 4);
  return f;
}

static inline guint16
gt_half_from_float (float f)
{
  guint32 bits, sign, magnitude, normal, subnormal;
  float small;

  memcpy (&bits, &f, 4);
  sign = (bits >> 16) & 0x8000;
  magnitude = bits & 0x7fffffffu;
  /* adding 0.5 aligns the last bit of a subnormal half with the last bit of the float */
  memcpy (&small, &magnitude, 4);
  small += 0.5f;
  memcpy (&subnormal, &small, 4);
  subnormal -= 0x3f000000u;
  normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1)) >> 13;
  normal = gt_pick (magnitude >= 0x47800000u, 0x7c00, normal);
  normal = gt_pick (magnitude > 0x7f800000u, 0x7e00, normal);
  return (guint16) (sign | gt_pick (magnitude < 0x38800000u, subnormal, normal));
}
