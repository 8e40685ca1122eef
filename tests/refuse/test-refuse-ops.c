/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Calls every operation in all its public forms, on the samples of its row, with one invalid argument at
 * a time. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "op-values.h"
#include "refuse.h"

#define MAX_TENSORS 16
#define MAX_INTS    72

typedef struct
{
  const GTorchOpClass *op;
  const GTorchOpSample *sample;
  const Function *function;
  gboolean in_place;
  gboolean is_scalar;       /* the optional number in place of a tensor is used */
  guint places[MAX_PARAMS]; /* maps arguments of the row to those of the function */
  guint inputs[MAX_PARAMS]; /* maps tensor arguments to tensors */
  Value args[MAX_PARAMS];
  GTorchTensor *tensors[MAX_TENSORS];
  guint n_tensors;
  gint64 ints[MAX_PARAMS][MAX_INTS];
} Call;

static gchar **covered; /* the name of each function, NULL if it was not called */

static void
call_clear (Call *call)
{
  guint i;

  for (i = 0; i < call->n_tensors; i++)
    g_clear_object (&call->tensors[i]);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Call, call_clear)

static guint
main_dtype (const GTorchOpClass *op)
{
  return op->dtypes & GTORCH_DTYPES (FLOAT32) ? GTORCH_DTYPE_FLOAT32
                                              : g_bit_nth_lsf (op->dtypes, -1);
}

static GTorchTensor *
tensor_new (const GTorchSampleTensor *spec, guint dtype, const GTorchOpSample *sample)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  GTorchImpl *impl = input_new (spec, dtype, LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);

  return impl != NULL ? gtorch_tensor_wrap (impl) : NULL;
}

static guint
sample_dtype (const Call *call, guint input)
{
  const guint dtype = call->sample->tensors[input].dtype;

  return dtype != GTORCH_DTYPE_NONE ? dtype : main_dtype (call->op);
}

/* Sets the arguments from the row's sample, for a form of the operation. */
static void
call_init (Call *call)
{
  const GTorchOpSample *sample = call->sample;
  guint i, place = 0, attr = 0, input = 0;

  call->n_tensors = sample->n_tensors;
  for (i = 0; i < sample->n_tensors; i++)
    call->tensors[i] = tensor_new (&sample->tensors[i], sample_dtype (call, i), sample);
  for (i = 0; i < call->op->n_args; i++)
    {
      Value *value = &call->args[place];
      const ParamKind kind = call->function->params[place].kind;

      call->places[i] = place++;
      switch (call->op->args[i].kind)
        {
        case GTORCH_ARG_TENSOR:
        case GTORCH_ARG_OPTIONAL_TENSOR:
          call->inputs[i] = input;
          if (kind == PARAM_DOUBLE)
            value->d = 2.0;
          else if (kind == PARAM_INT)
            value->i = 2;
          else
            value->p = call->tensors[input];
          input++;
          break;
        case GTORCH_ARG_TENSORS:
          call->inputs[i] = call->op->n_inputs;
          value->p = call->tensors + call->op->n_inputs;
          call->args[place++].i = call->n_tensors - call->op->n_inputs;
          break;
        case GTORCH_ARG_INTS:
          if (sample->attrs[attr].list.n > 0)
            memcpy (call->ints[i], sample->attrs[attr].list.data,
                    sample->attrs[attr].list.n * sizeof (gint64));
          value->p = call->ints[i];
          call->args[place++].i = sample->attrs[attr++].list.n;
          break;
        case GTORCH_ARG_DOUBLE:
          value->d = sample->attrs[attr++].d;
          break;
        case GTORCH_ARG_NUMBER:
          if (kind == PARAM_DOUBLE)
            value->d = sample->attrs[attr++].number.d;
          else
            value->i = sample->attrs[attr++].number.i;
          break;
        case GTORCH_ARG_DEVICE:
        case GTORCH_ARG_GENERATOR:
          value->p = sample->attrs[attr++].p;
          break;
        default:
          value->i = sample->attrs[attr++].i;
        }
    }
}

static const gint64 whole[] = {
  G_MININT64,
  G_MININT64 + 1,
  -(G_GINT64_CONSTANT (1) << 46),
  -1,
  0,
  1,
  7,
  GTORCH_NONE,
  (G_GINT64_CONSTANT (1) << 46) + 1,
  G_MAXINT64 - 1,
  G_MAXINT64,
};

static const gdouble real[] = { NAN, INFINITY, -INFINITY, G_MAXDOUBLE, -G_MAXDOUBLE,      4e-320,
                                0.0, -1.0,     0.5,       1e19,        GTORCH_NONE_DOUBLE };

/* Shapes that are seldom valid. */
static const GTorchSampleTensor shapes[] = {
  { "shape []", 0, { 0 }, 0 },
  { "shape [0]", 1, { 0 }, 0 },
  { "shape [5]", 1, { 5 }, 0 },
  { "shape [0, 3]", 2, { 0, 3 }, 0 },
  { "shape [3, 0]", 2, { 3, 0 }, 0 },
  { "shape [5, 7]", 2, { 5, 7 }, 0 },
  { "shape [2, 0, 3]", 3, { 2, 0, 3 }, 0 },
  { "shape [3, 1, 2]", 3, { 3, 1, 2 }, 0 },
  { "shape [0, 1, 4, 4]", 4, { 0, 1, 4, 4 }, 0 },
  { "shape [1, 2, 0, 4]", 4, { 1, 2, 0, 4 }, 0 },
  { "shape [2, 3, 5, 4]", 4, { 2, 3, 5, 4 }, 0 },
  { "shape of eight", 8, { 1, 2, 1, 1, 2, 1, 1, 3 }, 0 },
};

static void
replace_tensor (Call *call, guint arg, guint input, GTorchTensor *tensor)
{
  g_clear_object (&call->tensors[input]);
  call->tensors[input] = tensor;
  if (call->op->args[arg].kind != GTORCH_ARG_TENSORS)
    call->args[call->places[arg]].p = tensor;
}

/* Makes a tensor invalid in the m-th way. Returns FALSE if there are no more ways. */
static gboolean
spoil_tensor (Call *call, guint arg, guint input, guint m, Refusal *refusal)
{
  const gboolean optional = call->op->args[arg].kind == GTORCH_ARG_OPTIONAL_TENSOR;
  const gboolean in_list = call->op->args[arg].kind == GTORCH_ARG_TENSORS;
  const guint dtype = sample_dtype (call, input);
  GTorchSampleTensor spec = call->sample->tensors[input];
  GTorchTensor *tensor = call->tensors[input];
  GTorchDevice *device;

  if (tensor == NULL)
    spec = shapes[2];
  switch (m)
    {
    case 0:
      refusal->what = g_strdup ("is NULL");
      refusal->expect = optional ? MAY_FAIL : in_list ? MUST_NOT_WORK : MUST_COMPLAIN;
      replace_tensor (call, arg, input, NULL);
      return TRUE;
    case 1:
      refusal->what = g_strdup ("is no tensor");
      refusal->expect = in_list ? MUST_NOT_WORK : MUST_COMPLAIN;
      replace_tensor (call, arg, input, g_object_ref (refuse_stranger ()));
      return TRUE;
    case 2:
      refusal->what = g_strdup ("is released");
      refusal->expect = MUST_FAIL;
      tensor = tensor_new (&spec, dtype, call->sample);
      gtorch_tensor_release (tensor);
      replace_tensor (call, arg, input, tensor);
      return TRUE;
    default:
      break;
    }
  m -= 3;
  if (m < GTORCH_N_DTYPES - 1)
    {
      refusal->what = g_strdup_printf ("is %s", gtorch_dtype_get_name (m + 1));
      replace_tensor (call, arg, input, tensor_new (&spec, m + 1, call->sample));
      return TRUE;
    }
  m -= GTORCH_N_DTYPES - 1;
  if (m < G_N_ELEMENTS (shapes))
    {
      refusal->what = g_strdup_printf ("has %s", shapes[m].name);
      replace_tensor (call, arg, input, tensor_new (&shapes[m], dtype, call->sample));
      return TRUE;
    }
  if (m == G_N_ELEMENTS (shapes) && tensor != NULL
      && (device = gtorch_device_cuda (0, NULL)) != NULL)
    {
      refusal->what = g_strdup ("is on another device");
      replace_tensor (call, arg, input, gtorch_tensor_to_device (tensor, device, FALSE, NULL));
      return TRUE;
    }
  return FALSE;
}

static gboolean
spoil_int (Value *value, guint m, Refusal *refusal)
{
  if (m >= G_N_ELEMENTS (whole))
    return FALSE;
  value->i = whole[m];
  refusal->what = g_strdup_printf ("is %" G_GINT64_FORMAT, whole[m]);
  if (ABS ((gdouble) whole[m]) > 7)
    refusal->mention = g_strdup_printf ("%" G_GINT64_FORMAT, whole[m]);
  return TRUE;
}

static gboolean
spoil_double (Value *value, guint m, Refusal *refusal)
{
  if (m >= G_N_ELEMENTS (real))
    return FALSE;
  value->d = real[m];
  refusal->what = g_strdup_printf ("is %g", real[m]);
  return TRUE;
}

static gboolean
spoil_choice (Value *value, guint m, guint n, Refusal *refusal)
{
  const gint64 wrong[] = { -1, 9999, G_MAXINT, G_MININT };

  value->i = m < n ? m : wrong[MIN (m - n, 3)];
  refusal->what = g_strdup_printf ("is %" G_GINT64_FORMAT, value->i);
  refusal->expect = m < n ? MAY_FAIL : MUST_FAIL;
  return m - n < G_N_ELEMENTS (wrong) || m < n;
}

static gboolean
spoil_ints (Call *call, guint arg, guint m, Refusal *refusal)
{
  Value *value = &call->args[call->places[arg]];
  gint64 *ints = call->ints[arg];
  const gsize n = value[1].i;
  gsize i;

  switch (m)
    {
    case 0:
      refusal->what = g_strdup ("is NULL");
      refusal->expect = MUST_COMPLAIN;
      value[0].p = NULL;
      value[1].i = 2;
      return TRUE;
    case 1:
      refusal->what = g_strdup ("is empty");
      value[0].p = NULL;
      value[1].i = 0;
      return TRUE;
    case 2:
      refusal->what = g_strdup ("has one more");
      ints[n] = n > 0 ? ints[n - 1] : 1;
      value[1].i++;
      return TRUE;
    case 3:
      refusal->what = g_strdup ("has one less");
      value[1].i = n > 0 ? n - 1 : 0;
      return TRUE;
    case 4:
      refusal->what = g_strdup ("has 70");
      for (i = 0; i < 70; i++)
        ints[i] = 1;
      value[1].i = 70;
      return TRUE;
    case 5:
      refusal->what = g_strdup ("are all 2^31");
      for (i = 0; i < 8; i++)
        ints[i] = G_GINT64_CONSTANT (1) << 31;
      value[1].i = MAX (n, 3);
      return TRUE;
    case 6:
      refusal->what = g_strdup ("are all the first");
      for (i = 1; i < n; i++)
        ints[i] = ints[0];
      return TRUE;
    default:
      break;
    }
  m -= 7;
  if (n == 0 && m < G_N_ELEMENTS (whole))
    value[1].i = 1;
  i = m / G_N_ELEMENTS (whole);
  if (i >= MAX (n, 1))
    return FALSE;
  ints[i] = whole[m % G_N_ELEMENTS (whole)];
  refusal->what = g_strdup_printf ("has %" G_GINT64_FORMAT, ints[i]);
  if (ABS ((gdouble) ints[i]) > 7)
    refusal->mention = g_strdup_printf ("%" G_GINT64_FORMAT, ints[i]);
  return TRUE;
}

static gboolean
spoil_tensors (Call *call, guint arg, guint m, Refusal *refusal)
{
  Value *value = &call->args[call->places[arg]];
  const guint first = call->inputs[arg];

  if (m == 0)
    {
      refusal->what = g_strdup ("is NULL");
      refusal->expect = MUST_COMPLAIN;
      value[0].p = NULL;
      value[1].i = 2;
      return TRUE;
    }
  if (m == 1)
    {
      refusal->what = g_strdup ("is empty");
      value[1].i = 0;
      return TRUE;
    }
  if (first >= call->n_tensors)
    return FALSE;
  return spoil_tensor (call, arg, call->n_tensors - 1, m - 2, refusal);
}

static gboolean
spoil_object (Value *value, guint m, Refusal *refusal)
{
  value->p = m == 0 ? NULL : refuse_stranger ();
  refusal->what = g_strdup (m == 0 ? "is NULL" : "is of a wrong class");
  refusal->expect = m == 0 ? MAY_FAIL : MUST_COMPLAIN;
  return m < 2;
}

static gboolean
spoil (Call *call, guint arg, guint m, Refusal *refusal)
{
  const guint place = call->places[arg];
  Value *value = &call->args[place];

  switch (call->function->params[place].kind)
    {
    case PARAM_DOUBLE:
      if (!spoil_double (value, m, refusal))
        return FALSE;
      if (value->d == GTORCH_NONE_DOUBLE && !call->function->params[place].takes_none)
        refusal->expect = MUST_FAIL;
      return TRUE;
    case PARAM_INT:
      if (!spoil_int (value, m, refusal))
        return FALSE;
      if (value->i == GTORCH_NONE && !call->function->params[place].takes_none)
        refusal->expect = MUST_FAIL;
      else if (value->i == GTORCH_NONE)
        g_clear_pointer (&refusal->mention, g_free); /* its default is told, if anything is */
      return TRUE;
    default:
      break;
    }
  switch (call->op->args[arg].kind)
    {
    case GTORCH_ARG_TENSOR:
    case GTORCH_ARG_OPTIONAL_TENSOR:
      return spoil_tensor (call, arg, call->inputs[arg], m, refusal);
    case GTORCH_ARG_TENSORS:
      return spoil_tensors (call, arg, m, refusal);
    case GTORCH_ARG_INTS:
      return spoil_ints (call, arg, m, refusal);
    case GTORCH_ARG_DTYPE:
      return spoil_choice (value, m, GTORCH_N_DTYPES, refusal);
    case GTORCH_ARG_ENUM:
      return spoil_choice (value, m, 0, refusal);
    case GTORCH_ARG_DEVICE:
    case GTORCH_ARG_GENERATOR:
      return spoil_object (value, m, refusal);
    default: /* BOOL: any value is valid */
      value->i = m == 0 ? -1 : 0x100;
      refusal->what = g_strdup ("is neither FALSE nor TRUE");
      return m < 2;
    }
}

/* Makes one call with one fault. Returns FALSE if there are no more faults. */
static gboolean
refuse_one (const Call *form, guint arg, guint m)
{
  g_auto (Call) call = *form;
  g_auto (Refusal) refusal = { .begin = form->op->name };
  g_autofree gchar *what = NULL;

  call_init (&call);
  if (!spoil (&call, arg, m, &refusal))
    return FALSE;
  what = refusal.what;
  refusal.what =
      g_strdup_printf ("sample %u, %s %s", form->sample->index, form->op->args[arg].name, what);
  refuse_call (call.function, call.args, &refusal);
  return TRUE;
}

static void
refuse_form (const Call *form)
{
  g_auto (Call) call = *form;
  g_auto (Refusal) refusal = { .begin = form->op->name, .what = g_strdup ("nothing") };
  guint arg, m;

  covered[form->function - functions] = (gchar *) form->op->name;
  call_init (&call);
  if (!refuse_call (call.function, call.args, &refusal) && !form->in_place && !form->is_scalar)
    {
      g_test_message ("%s: sample %u does not work", form->function->name, form->sample->index);
      g_test_fail ();
    }
  for (arg = 0; arg < form->op->n_args; arg++)
    for (m = 0; refuse_one (form, arg, m); m++)
      ;
}

static void
refuses (gconstpointer data)
{
  static const gchar *const stems[] = { "gtorch_tensor_", "gtorch_" };
  static const gchar *const ends[] = { "",     "_inplace",    "_scalar", "_scalar_inplace",
                                       "_int", "_int_inplace" };
  const GTorchOpClass *op = data;
  guint i, j, k;

  for (i = 0; i < gtorch_n_op_samples; i++)
    for (j = 0; gtorch_op_samples[i].op == op->id && j < G_N_ELEMENTS (stems); j++)
      for (k = 0; k < G_N_ELEMENTS (ends); k++)
        {
          g_autofree gchar *name = g_strconcat (stems[j], op->name, ends[k], NULL);
          Call form = {
            .op = op, .sample = &gtorch_op_samples[i], .in_place = k & 1, .is_scalar = k > 1
          };

          form.function = refuse_find (name);
          if (j > 0 && g_str_has_prefix (op->name, "tensor_"))
            continue; /* gtorch_tensor_split is a method of another operation */
          if (k > 0 && gtorch_op_find (name + strlen (stems[j])) != NULL)
            continue; /* full_int is a separate operation */
          if (form.function != NULL && g_str_equal (form.function->header, "gtorch-tensor-ops.h"))
            refuse_form (&form);
        }
}

/* Fails if a public operation is not tested above, because it has no sample or its arguments are not
 * those of its row. */
static void
test_all_are_called (void)
{
  guint i;

  for (i = 0; i < n_functions; i++)
    if (g_str_equal (functions[i].header, "gtorch-tensor-ops.h") && covered[i] == NULL
        && !g_str_equal (functions[i].name, WITHOUT_SAMPLE))
      {
        g_test_message ("%s was not called", functions[i].name);
        g_test_fail ();
      }
}

static gboolean
is_public (const GTorchOpClass *op)
{
  g_autofree gchar *method = g_strconcat ("gtorch_tensor_", op->name, NULL);
  g_autofree gchar *function = g_strconcat ("gtorch_", op->name, NULL);

  return refuse_find (method) != NULL || refuse_find (function) != NULL;
}

int
main (int argc, char *argv[])
{
  g_autofree gchar **names = NULL;
  guint i;

  g_test_init (&argc, &argv, NULL);
  refuse_init ();
  covered = names = g_new0 (gchar *, n_functions);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      g_autofree gchar *path = g_strdup_printf ("/GTorch/refuse/%s", gtorch_ops[i].name);

      if (is_public (&gtorch_ops[i]))
        g_test_add_data_func (path, &gtorch_ops[i], refuses);
    }
  g_test_add_func ("/GTorch/refuse/all_are_called", test_all_are_called);
  return g_test_run ();
}
