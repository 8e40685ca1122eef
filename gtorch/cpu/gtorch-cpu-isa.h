/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* The files under cpu/isa/ and the generated loops are compiled once for each x86-64 level of the option
 * cpu-isa. The symbols that they define have the level in their name:
 *
 *   void GTORCH_ISA_SYMBOL (gtorch_softmax_row_f32) (…)         in cpu/isa/gtorch-isa-softmax.c
 *   GTORCH_ISA_DECLARE (void, gtorch_softmax_row_f32, (…));     in a header
 *   GTORCH_ISA_CALL (gtorch_softmax_row_f32) (…);               at a call; picks the best level */
#define GTORCH_ISA_PASTE_(name, isa) name##_##isa
#define GTORCH_ISA_PASTE(name, isa)  GTORCH_ISA_PASTE_ (name, isa)
#define GTORCH_ISA_SYMBOL(name)      GTORCH_ISA_PASTE (name, GTORCH_ISA)

enum
{
  GTORCH_ISA_LEVEL_BASELINE,
  GTORCH_ISA_LEVEL_V3,
  GTORCH_ISA_LEVEL_V4,
};

/* Returns the highest compiled level that this processor supports; GTORCH_CPU_ISA in the environment can
 * lower it. */
guint gtorch_cpu_isa (void);
/* Sets another limit: a value of the option, or NULL. Must not be called while anything computes. */
void gtorch_cpu_isa_choose (const gchar *limit);

#ifdef GTORCH_HAVE_ISA_V4
#define GTORCH_ISA_PICK_V4(name)                gtorch_cpu_isa () >= GTORCH_ISA_LEVEL_V4 ? name##_v4:
#define GTORCH_ISA_DECLARE_V4(type, name, args) type name##_v4 args;
#else
#define GTORCH_ISA_PICK_V4(name)
#define GTORCH_ISA_DECLARE_V4(type, name, args)
#endif
#ifdef GTORCH_HAVE_ISA_V3
#define GTORCH_ISA_PICK_V3(name)                gtorch_cpu_isa () >= GTORCH_ISA_LEVEL_V3 ? name##_v3:
#define GTORCH_ISA_DECLARE_V3(type, name, args) type name##_v3 args;
#else
#define GTORCH_ISA_PICK_V3(name)
#define GTORCH_ISA_DECLARE_V3(type, name, args)
#endif

#define GTORCH_ISA_DECLARE(type, name, args) \
  GTORCH_ISA_DECLARE_V4 (type, name, args)   \
  GTORCH_ISA_DECLARE_V3 (type, name, args)   \
  type name##_baseline args
#define GTORCH_ISA_CALL(name) (GTORCH_ISA_PICK_V4 (name) GTORCH_ISA_PICK_V3 (name) name##_baseline)

/* Returns the loop of a pointwise operation for a compute dtype, or NULL if there is none. */
GTorchLoop gtorch_cpu_loop (gint loop, guint dtype);

G_END_DECLS
