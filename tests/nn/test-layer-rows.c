/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every layer with the arguments of its row's samples: its text, values, gradients and state, and the
 * arguments that it refuses. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "layer-samples.h"
#include "members.h"

/* clang-format off */
/* Written by reference.py beside this file, with PyTorch 2.11. */
static const struct
{
  const gchar *layer;
  const gchar *arguments;
  const gchar *shape;
  gdouble output;
  gdouble gradient;
} reference[] = {
  { "Identity", "", "[2, 3]", 2.5708037522309235, 2.952904133177273 },
  { "ReLU", "", "[2, 3]", 1.2740398363141574, 1.465104771294623 },
  { "Sigmoid", "", "[2, 3]", 0.48608066372016745, 0.6316689637400599 },
  { "Tanh", "", "[2, 3]", 2.059406230263779, 1.6836642639623047 },
  { "SiLU", "", "[2, 3]", 1.2856014394765432, 1.45431209359351 },
  { "GELU", "", "[2, 3]", 1.2857192264324957, 1.4400375234751923 },
  { "GELU", "approximate='tanh'", "[2, 3]", 1.2857166832639162, 1.4400417340493274 },
  { "LeakyReLU", "0.2", "[2, 3]", 1.5333926194975107, 1.762664643671153 },
  { "Softmax", "1", "[2, 3]", 0.22329868824097487, 0.5878978047301948 },
  { "LogSoftmax", "0", "[2, 3]", 2.765451591438419, 2.97100384621406 },
  { "Flatten", "", "[2, 12]", 10.58493669414348, 12.286713423569037 },
  { "Linear", "3, 4", "[2, 4]", 3.9190213749235356, 2.001517423468486 },
  { "Linear", "3, 4, bias=False", "[2, 5, 4]", 1.683099690067594, 2.098481198923505 },
  { "Conv2d", "2, 3, 3, padding=1", "[2, 3, 5, 4]", 131.31071195464088, 58.87849112904159 },
  { "Conv2d", "4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2, False", "[1, 6, 3, 5]", -3.4853441765824527, -1.3156003634911966 },
  { "MaxPool1d", "2", "[1, 2, 4]", 1.1421866794787252, 0.5218050198258204 },
  { "MaxPool1d", "3, stride=2, padding=1, dilation=2, ceil_mode=True", "[2, 4]", 1.0338804752641186, -0.5062777934392845 },
  { "MaxPool2d", "2", "[1, 2, 2, 3]", 0.0578551487227609, -0.48248237935439875 },
  { "MaxPool2d", "(3, 2), (2, 1), (1, 0), ceil_mode=True", "[1, 2, 3, 6]", 2.0558981493842543, 0.8465575161646619 },
  { "MaxPool2d", "(3, 2), stride=2, dilation=(1, 2)", "[2, 2, 3]", -0.4962648749000731, 0.22781222621955377 },
  { "MaxPool3d", "2", "[1, 2, 2, 1, 3]", -0.023451679369281747, -0.12590120708051378 },
  { "MaxPool3d", "(3, 2, 2), (2, 1, 1), (1, 0, 1)", "[2, 2, 3, 4]", 0.7442730070320411, 1.48472104910324 },
  { "AvgPool1d", "2", "[1, 2, 4]", 0.7908572486579026, 0.4517074120170028 },
  { "AvgPool1d", "3, 2, 1, True, False", "[2, 5]", -0.16097726616303554, 0.06181347641511148 },
  { "AvgPool2d", "2", "[1, 2, 2, 3]", 0.33897728673362615, -0.12305646423330019 },
  { "AvgPool2d", "3, (2, 1), 1, True, False, 5", "[2, 3, 7]", 7.972855883263198, 1.6714774869124722 },
  { "AvgPool3d", "2", "[1, 2, 2, 1, 3]", 0.9108312103167878, 0.6225855619632953 },
  { "AvgPool3d", "(3, 2, 2), (2, 1, 1), 1, True, False, 5", "[2, 2, 5, 4]", -0.030080160435913245, 0.6871576990262117 },
  { "LPPool1d", "2.0, 2", "[1, 2, 4]", 1.508598574604381, 1.421125337975809 },
  { "LPPool1d", "4.0, 3, stride=2, ceil_mode=True", "[2, 3]", -0.21304353249132046, -0.11059143456102966 },
  { "LPPool2d", "2.0, 2", "[1, 2, 2, 3]", -0.5421912319913544, 0.017707877831749097 },
  { "LPPool2d", "4.0, (3, 2), stride=2, ceil_mode=True", "[2, 2, 3]", -0.5937484369593975, -0.13689626173341407 },
  { "LPPool3d", "2.0, 2", "[1, 2, 2, 1, 3]", -0.03888667925982747, 0.7817374922041856 },
  { "LPPool3d", "4.0, (2, 2, 2), stride=2, ceil_mode=True", "[1, 2, 2, 2]", 2.2204254976621645, 2.1225949969782896 },
  { "AdaptiveAvgPool1d", "3", "[1, 2, 3]", 0.7125898384307163, 0.36037667041314586 },
  { "AdaptiveAvgPool1d", "1", "[2, 1]", 0.1355791510667443, 0.15086541803531178 },
  { "AdaptiveAvgPool2d", "(2, 3)", "[1, 2, 2, 3]", 0.6081629930505665, 0.49021438843719295 },
  { "AdaptiveAvgPool2d", "2", "[2, 2, 2]", -0.3701510485504311, -0.6632101289259221 },
  { "AdaptiveAvgPool3d", "(3, 2, 1)", "[1, 2, 3, 2, 1]", 0.10347189765764075, 0.08630582890177992 },
  { "AdaptiveAvgPool3d", "2", "[2, 2, 2, 2]", -0.012203744362290167, -0.03067377097906826 },
  { "AdaptiveMaxPool1d", "3", "[1, 2, 3]", -0.20067395143743844, -0.18997134873350366 },
  { "AdaptiveMaxPool1d", "1", "[2, 1]", 1.4445248653175606, 1.0305978943383027 },
  { "AdaptiveMaxPool2d", "(3, 2)", "[1, 2, 3, 2]", -0.08838643273296543, -0.052337681173738715 },
  { "AdaptiveMaxPool2d", "2", "[2, 2, 2]", 1.5389091402223642, 1.0289911402906555 },
  { "AdaptiveMaxPool3d", "(3, 2, 1)", "[1, 2, 3, 2, 1]", -0.400603231509383, -0.3724342596473357 },
  { "AdaptiveMaxPool3d", "2", "[2, 2, 2, 2]", 0.5436793492679542, 0.47513205528315616 },
  { "BatchNorm1d", "3", "[4, 3]", 5.522113211660767, 0.14118463885150595 },
  { "BatchNorm2d", "3", "[2, 3, 2, 2]", 11.91021185507045, 1.8621784531603534 },
  { "LayerNorm", "[3, 4]", "[2, 3, 4]", 11.485912203816701, 0.36185498081821965 },
  { "RNNCell", "3, 4", "[2, 4]", 1.1091514579847042, 0.7638185055125524 },
  { "RNNCell", "3, 2, bias=False", "[2]", 0.42101545716407807, 0.104742182536172 },
  { "RNNCell", "2, 3, nonlinearity='relu'", "[2, 3]", 1.315940457111996, 2.1662636151128183 },
  { "LSTMCell", "3, 4", "[2, 4]", 0.15154233681359908, 0.03013859345074571 },
  { "LSTMCell", "3, 2, bias=False", "[2]", 0.43748043479085774, 0.189416779062064 },
  { "GRUCell", "3, 4", "[2, 4]", 0.03864901471733895, -0.20150294974764757 },
  { "GRUCell", "3, 2, bias=False", "[2]", -0.20937573222541145, -0.22647652989405437 },
  { "RNN", "3, 4", "[5, 2, 4]", 1.878249582716867, -0.4033250790834188 },
  { "RNN", "2, 3, 2, bias=False, batch_first=True, bidirectional=True", "[2, 3, 6]", 0.12946710646868892, -0.2964015683384791 },
  { "RNN", "2, 3, 2, dropout=0.5", "[4, 3]", 1.327471750662309, 0.9233829499987543 },
  { "RNN", "2, 3, nonlinearity='relu'", "[3, 2, 3]", -1.5404637295478967, 0.9941560108734062 },
  { "LSTM", "3, 4", "[5, 2, 4]", 0.10794379383333058, 0.30810591017699734 },
  { "LSTM", "2, 3, 2, bias=False, batch_first=True, bidirectional=True", "[2, 3, 6]", -0.04183797472045961, -0.17287309207071366 },
  { "LSTM", "2, 3, 2, dropout=0.5", "[4, 3]", -0.04327063023035198, 0.001707572583102244 },
  { "LSTM", "3, 4, num_layers=2, bidirectional=True, proj_size=2", "[3, 2, 4]", 0.6399488546023067, 0.15248412103138947 },
  { "GRU", "3, 4", "[5, 2, 4]", 0.6221513567062136, 0.18683947764023595 },
  { "GRU", "2, 3, 2, bias=False, batch_first=True, bidirectional=True", "[2, 3, 6]", 0.23172296983418939, 0.1775787363703633 },
  { "GRU", "2, 3, 2, dropout=0.5", "[4, 3]", -0.08621495444544391, -0.45697742257046503 },
  { "CELU", "", "[2, 3]", 2.1335124938986647, 2.1495417893146698 },
  { "CELU", "0.5, True", "[2, 3]", 1.8781631056593868, 1.7896246362648296 },
  { "SELU", "", "[2, 3]", 2.8496732267211646, 2.742695300011073 },
  { "SELU", "inplace=True", "[2, 3]", 2.8496732267211646, 2.742695300011073 },
  { "GLU", "", "[2, 3]", 0.009910851800281395, -0.027023536097688594 },
  { "GLU", "0", "[2, 3]", 1.2914671602915253, 1.4748855092289261 },
  { "Hardshrink", "", "[2, 3]", 2.708790008029948, 2.699261708147305 },
  { "Hardshrink", "0.25", "[2, 3]", 2.629530397158544, 2.779725943609079 },
  { "Softshrink", "", "[2, 3]", 1.1168207963638492, 2.699261708147305 },
  { "Softshrink", "lambd=0.25", "[2, 3]", 1.9044613376913015, 2.779725943609079 },
  { "Tanhshrink", "", "[2, 3]", 0.5113975219671447, 1.2692398692149682 },
  { "Softmin", "1", "[2, 3]", -0.39865687911111386, -0.6061328466570598 },
  { "Softmin", "", "[2, 3, 2]", -0.2547770300560347, -0.059065602646062844 },
  { "Threshold", "0.25, 20.0", "[2, 3]", -34.18964888971769, 1.291926581726429 },
  { "Threshold", "-0.5, value=-1.5, inplace=True", "[2, 3]", 3.66023440163884, 1.5455690067563967 },
  { "PReLU", "", "[2, 3]", 2.3652290457039826, 2.717044765534576 },
  { "PReLU", "3, 0.5", "[2, 3, 2]", 3.9181036630823236, 4.7936260484204976 },
  { "RReLU", "", "[2, 3]", 1.5712149003784166, 1.8060587917260635 },
  { "RReLU", "0.25, 0.25, True", "[2, 3]", 1.5982308152933489, 1.8370546117652855 },
  { "RReLU", "0.25, 0.5, True", "[2, 3]", 1.7603263047829447, 2.023029532000617 },
  { "CircularPad1d", "2", "[2, 1, 7]", 0.05653481917722036, -0.07201959026961777 },
  { "CircularPad1d", "(1, -1)", "[2, 4]", -0.39676871112360423, 0.4945080043877245 },
  { "CircularPad2d", "(1, 2, 0, 1)", "[1, 2, 4, 5]", -2.914110409365814, -2.7679764193822836 },
  { "CircularPad3d", "1", "[1, 2, 3, 5, 4]", -0.3638067833519638, -0.6341784771778953 },
  { "ReflectionPad1d", "2", "[2, 1, 8]", 2.6128001499435647, 0.48540636603027215 },
  { "ReflectionPad1d", "(1, 0)", "[2, 4]", 0.12657305905692418, 1.0004126882345024 },
  { "ReflectionPad2d", "(1, 2, 0, 1)", "[1, 2, 4, 6]", 0.145926871012098, -0.09401868753841569 },
  { "ReflectionPad3d", "1", "[1, 2, 4, 5, 4]", 2.5105505717247345, 3.084865808966294 },
  { "ReplicationPad1d", "2", "[2, 1, 7]", 0.6721682526374226, 1.6898404576057617 },
  { "ReplicationPad1d", "(3, -1)", "[2, 5]", -1.009533125523121, -1.457146147056179 },
  { "ReplicationPad2d", "(1, 2, 0, 1)", "[1, 2, 4, 5]", 0.8508909173509098, 3.3967865523197984 },
  { "ReplicationPad3d", "1", "[2, 3, 5, 4]", 1.3514410678142121, 2.834515246187596 },
  { "ConstantPad1d", "2, 3.5", "[2, 1, 7]", 18.15373187883961, 0.7726909380831117 },
  { "ConstantPad1d", "(1, -2), value=-0.5", "[2]", -0.04535128658715909, 0.5403023058681398 },
  { "ConstantPad2d", "(1, 2, 0, 1), 0.25", "[2, 4, 5]", -3.3166100656730606, -2.4655741671740956 },
  { "ConstantPad3d", "1, -1.5", "[1, 2, 3, 5, 4]", -0.6514793677077445, 0.10482724828529183 },
  { "ZeroPad1d", "2", "[2, 1, 7]", 0.15029979339272237, 0.7726909380831117 },
  { "ZeroPad1d", "(1, -1)", "[3]", 0.07624746575887675, 0.31545721050198683 },
  { "ZeroPad2d", "(1, 2, -1, 1)", "[2, 3, 5]", 0.09910714540712981, 0.6185891628833993 },
  { "ZeroPad3d", "1", "[1, 2, 3, 5, 4]", 0.039907975677355045, 0.10482724828529183 },
  { "CosineSimilarity", "", "[4]", 0.08242803507170404, 0.06383141866904338 },
  { "CosineSimilarity", "-1, 0.5", "[2, 4]", -1.2780408456700414, -0.22111791612218318 },
  { "PairwiseDistance", "", "[4]", 0.13514257081544878, -0.007496965321705129 },
  { "PairwiseDistance", "3.0, 0.5, True", "[4, 1]", 0.2506273432708681, -0.5326605068654306 },
  { "Bilinear", "3, 2, 4", "[2, 4]", 2.281085707598946, 2.780943164913217 },
  { "Bilinear", "2, 3, 1, bias=False", "[2, 2, 1]", -0.5377195335165177, 1.1407533199121294 },
  { "CosineEmbeddingLoss", "", "[]", 0.6362679267859488, 0.16157164190406106 },
  { "CosineEmbeddingLoss", "-0.5, reduction='none'", "[]", 0.24569547349445886, -0.34168203349695914 },
  { "MarginRankingLoss", "", "[]", 0.43098903327353627, -0.23026496815562206 },
  { "MarginRankingLoss", "0.75, reduction='sum'", "[]", 4.573395033591423, -1.865837027279448 },
  { "GaussianNLLLoss", "", "[]", -0.054231660386456465, 0.22057602255480768 },
  { "GaussianNLLLoss", "full=True, eps=0.0625, reduction='none'", "[4, 3]", 0.12687781353189417, 0.256698857713973 },
  { "TripletMarginLoss", "", "[]", 0.22817369719241687, -0.43742300540978646 },
  { "TripletMarginLoss", "2.0, 3.0, swap=True, reduction='none'", "[4]", 0.29855761722005525, 0.0433009980999326 },
  { "CTCLoss", "", "[]", 3.1335508799374185, 0.6664957342335489 },
  { "CTCLoss", "3, 'none', True", "[2]", 8.023786771397774, 1.8886298246796835 },
};
/* clang-format on */

GTorchTensor *
layer_sample_weights (gint64 n)
{
  gdouble values[8];

  for (gint64 i = 0; i < n; i++)
    values[i] = ldexp (0.5, (gint) i);
  return gtorch_tensor_new_from_doubles (values, n, &n, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL);
}

static GTorchTensor *
waves (const gint64 *shape, gsize n_dims, gdouble shift)
{
  gint64 n = 1;
  g_autofree gdouble *values = NULL;

  for (gsize i = 0; i < n_dims; i++)
    n *= shape[i];
  values = g_new (gdouble, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = sin ((gdouble) i + 1 + shift);
  return gtorch_tensor_new_from_doubles (values, n, shape, n_dims, GTORCH_DTYPE_FLOAT64, NULL,
                                         NULL);
}

static GTorchTensor *
integers (const gint64 *shape, gsize n_dims, gint64 limit)
{
  gint64 n = 1;
  g_autofree gint64 *values = NULL;

  for (gsize i = 0; i < n_dims; i++)
    n *= shape[i];
  values = g_new (gint64, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = (5 * i + 2) % limit;
  return gtorch_tensor_new_from_ints (values, n, shape, n_dims, GTORCH_DTYPE_INT64, NULL, NULL);
}

/* Returns the sum of the elements, where element j is multiplied by cos (j). */
static gdouble
weighed (GTorchTensor *tensor)
{
  gsize n;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (tensor, &n, NULL);
  gdouble sum = 0;

  for (gsize i = 0; i < n; i++)
    sum += values[i] * cos ((gdouble) i);
  return sum;
}

static GPtrArray *inputs_of (const LayerSample *sample);
static GTorchTensor *run (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                          GError **error);

/* Lets a lazy layer get its parameters; this changes nothing else, running statistics in particular. */
static void
use (GTorchModule *module, const LayerSample *sample)
{
  g_autoptr (GPtrArray) inputs = inputs_of (sample);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) y = NULL;

  gtorch_module_set_training (module, FALSE);
  y = run (module, (GTorchTensor **) inputs->pdata, inputs->len, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_module_has_uninitialized_params (module));
}

static GTorchModule *
make (const LayerSample *sample)
{
  g_autoptr (GError) error = NULL;
  GTorchModule *module = sample->make (&error);
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

  g_assert_no_error (error);
  g_assert_true (gtorch_module_to (module, NULL, GTORCH_DTYPE_FLOAT64, NULL));
  if (gtorch_module_has_uninitialized_params (module))
    use (module, sample);
  gtorch_module_set_training (module, sample->training);
  parameters = gtorch_module_get_parameters (module, TRUE);
  for (guint i = 0; i < g_list_model_get_n_items (parameters); i++)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);
      gsize n_dims;
      const gint64 *shape = gtorch_tensor_get_shape (parameter, &n_dims);
      g_autoptr (GTorchTensor) values = waves (shape, n_dims, 0);

      g_assert_true (gtorch_tensor_copy_inplace (parameter, values, FALSE, NULL));
    }
  return module;
}

/* Returns the input of a number. Those behind the first one are shifted waves. */
static GTorchTensor *
input_of (const LayerSample *sample, gsize i)
{
  const LayerInput *input = &sample->inputs[i];
  g_autoptr (GTorchTensor) values = NULL;
  g_autoptr (GTorchTensor) other = NULL;

  if (input->kind == LAYER_INPUT_INTEGERS)
    return integers (input->shape, input->n_dims, input->limit);
  values = waves (input->shape, input->n_dims, 7 * (gdouble) i);
  switch (input->kind)
    {
    case LAYER_INPUT_POSITIVE:
      other = gtorch_tensor_abs (values, NULL);
      return gtorch_tensor_add_scalar (other, 0.125, 1, NULL);
    case LAYER_INPUT_SIGNS:
      return gtorch_tensor_sign (values, NULL);
    case LAYER_INPUT_LOGS:
      return gtorch_tensor_log_softmax (values, -1, GTORCH_DTYPE_NONE, NULL);
    default:
      return g_steal_pointer (&values);
    }
}

static GPtrArray *
inputs_of (const LayerSample *sample)
{
  GPtrArray *inputs = g_ptr_array_new_with_free_func (g_object_unref);

  for (gsize i = 0; i < sample->n_inputs; i++)
    g_ptr_array_add (inputs, input_of (sample, i));
  return inputs;
}

/* Returns the module's output. In-place modules get a copy of the input. */
static GTorchTensor *
run (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  g_autoptr (GTorchTensor) copy = gtorch_tensor_clone (inputs[0], error);
  GTorchTensor *given[4] = { copy };

  g_assert_cmpuint (n_inputs, <=, G_N_ELEMENTS (given));
  for (gsize i = 1; i < n_inputs; i++)
    given[i] = inputs[i];
  return gtorch_module_forward_many (module, given, n_inputs, error);
}

static void
say (const LayerSample *sample)
{
  g_test_message ("%s(%s)", sample->layer, sample->arguments);
}

static void
texts_are_pytorchs (void)
{
  for (guint i = 0; i < n_layer_samples; i++)
    {
      g_autoptr (GTorchModule) module = layer_samples[i].make (NULL);
      g_autofree gchar *text = gtorch_module_to_string (module);

      say (&layer_samples[i]);
      g_assert_cmpstr (text, ==, layer_samples[i].text);
    }
}

static const LayerSample *
find (const gchar *layer, const gchar *arguments)
{
  for (guint i = 0; i < n_layer_samples; i++)
    if (g_str_equal (layer_samples[i].layer, layer)
        && g_str_equal (layer_samples[i].arguments, arguments))
      return &layer_samples[i];
  g_error ("no row has the sample %s(%s)", layer, arguments);
}

static void
values_are_pytorchs (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (reference); i++)
    {
      const LayerSample *sample = find (reference[i].layer, reference[i].arguments);
      g_autoptr (GTorchModule) module = make (sample);
      g_autoptr (GPtrArray) inputs = inputs_of (sample);
      GTorchTensor *x = inputs->pdata[0];
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) numbers = NULL;
      g_autoptr (GTorchTensor) cosines = NULL;
      g_autoptr (GTorchTensor) seed = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GError) error = NULL;
      GString *text = g_string_new ("[");
      const gint64 *shape;
      gsize n_dims;

      say (sample);
      g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
      y = run (module, (GTorchTensor **) inputs->pdata, inputs->len, &error);
      g_assert_no_error (error);
      shape = gtorch_tensor_get_shape (y, &n_dims);
      for (gsize j = 0; j < n_dims; j++)
        g_string_append_printf (text, "%s%d", j > 0 ? ", " : "", (gint) shape[j]);
      g_string_append_c (text, ']');
      g_assert_cmpstr (text->str, ==, reference[i].shape);
      g_string_free (text, TRUE);
      numbers = gtorch_arange (0, (gdouble) gtorch_tensor_get_numel (y), 1, GTORCH_DTYPE_FLOAT64,
                               NULL, NULL);
      cosines = gtorch_tensor_cos (numbers, NULL);
      seed = gtorch_tensor_reshape (cosines, shape, n_dims, NULL);
      gtorch_tensor_backward (y, seed, FALSE, FALSE, &error);
      g_assert_no_error (error);
      grad = gtorch_tensor_get_grad (x);
      g_assert_cmpfloat_with_epsilon (weighed (y), reference[i].output, 1e-11);
      g_assert_cmpfloat_with_epsilon (weighed (grad), reference[i].gradient, 1e-11);
    }
}

typedef struct
{
  GTorchModule *module;
  gsize n_inputs;
} Subject;

/* The first inputs are the layer's; the others are its parameters, which it already has. */
static GTorchTensor *
forward (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  Subject *self = user_data;

  return run (self->module, inputs, self->n_inputs, error);
}

static void
gradients_are_differences (void)
{
  guint n_checked = 0;

  for (guint i = 0; i < n_layer_samples; i++)
    {
      const LayerSample *sample = &layer_samples[i];
      g_autoptr (GTorchModule) module = make (sample);
      g_autoptr (GListModel) parameters = gtorch_module_get_parameters (module, TRUE);
      g_autoptr (GPtrArray) inputs = inputs_of (sample);
      g_autoptr (GError) error = NULL;
      Subject subject = { module, sample->n_inputs };

      say (sample);
      for (guint j = 0; j < sample->n_inputs; j++)
        if (sample->inputs[j].kind <= LAYER_INPUT_POSITIVE && (j == 0 || !sample->has_target))
          g_assert_true (gtorch_tensor_set_requires_grad (inputs->pdata[j], TRUE, NULL));
      for (guint j = 0; j < g_list_model_get_n_items (parameters); j++)
        g_ptr_array_add (inputs, g_list_model_get_item (parameters, j));
      if (sample->inputs[0].kind == LAYER_INPUT_LOGS)
        { /* its gradient is right for log-probabilities only, which differences are not */
          n_checked++;
          continue;
        }
      gtorch_gradcheck (forward, &subject, (GTorchTensor **) inputs->pdata, inputs->len, 1e-6, 1e-6,
                        1e-5, &error);
      g_assert_no_error (error);
      n_checked++;
    }
  g_assert_cmpuint (n_checked, ==, n_layer_samples);
}

static void
states_are_carried_over (void)
{
  for (guint i = 0; i < n_layer_samples; i++)
    {
      const LayerSample *sample = &layer_samples[i];
      g_autoptr (GTorchModule) from = make (sample);
      g_autoptr (GTorchModule) to = sample->make (NULL);
      g_autoptr (GHashTable) state = NULL;
      g_autoptr (GPtrArray) inputs = inputs_of (sample);
      GTorchTensor **given = (GTorchTensor **) inputs->pdata;
      g_autoptr (GTorchTensor) trained = NULL;
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) z = NULL;
      g_autoptr (GTorchTensor) same = NULL;
      g_autoptr (GTorchTensor) all = NULL;
      g_autoptr (GError) error = NULL;

      say (sample);
      g_assert_true (gtorch_module_to (to, NULL, GTORCH_DTYPE_FLOAT64, NULL));
      trained = run (from, given, inputs->len, &error); /* changes the running statistics */
      g_assert_no_error (error);
      state = gtorch_module_state_dict (from);
      g_assert_true (gtorch_module_load_state_dict (to, state, TRUE, &error));
      gtorch_module_eval (from);
      gtorch_module_eval (to);
      y = run (from, given, inputs->len, &error);
      z = run (to, given, inputs->len, &error);
      g_assert_no_error (error);
      same = gtorch_tensor_eq (y, z, &error);
      all = gtorch_tensor_all (same, NULL, 0, FALSE, &error);
      g_assert_cmpint (gtorch_tensor_item_int (all, &error), ==, 1);
    }
}

static void
bad_arguments_are_named (void)
{
  for (guint i = 0; i < n_layer_refusals; i++)
    {
      const LayerRefusal *refusal = &layer_refusals[i];
      g_autoptr (GError) error = NULL;
      g_autofree gchar *lead = g_strconcat (refusal->layer, ": ", NULL);

      g_test_message ("%s(%s)", refusal->layer, refusal->arguments);
      g_assert_null (refusal->make (&error));
      g_assert_nonnull (error);
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_true (error->code == GTORCH_ERROR_INVALID || error->code == GTORCH_ERROR_INDEX);
      g_assert_true (g_str_has_prefix (error->message, lead));
    }
  g_assert_cmpuint (n_layer_refusals, >, 40);
}

/* A program may make a layer without its arguments, and call the virtual function itself. */
static void
bare_layers_say_what_they_lack (void)
{
  g_autoptr (GTorchTensor) x = waves ((const gint64[]){ 2, 3, 4, 4 }, 4, 0);
  guint n = 0;

  for (guint i = 0; i < n_layer_samples; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GError) reason = NULL;
      g_autoptr (GObject) whole = layer_samples[i].make (&error);
      g_autoptr (GObject) bare = g_object_new (G_OBJECT_TYPE (whole), NULL);
      const gboolean is_whole = gtorch_module_check (GTORCH_MODULE (bare), &reason);
      g_autoptr (GTorchTensor) y = NULL;
      g_autofree gchar *text = NULL;

      g_test_message ("%s", layer_samples[i].layer);
      if (layer_samples[i].n_inputs > 1 && !layer_samples[i].has_target)
        {
          GTorchTensor *inputs[] = { x, x, x, x };

          y = GTORCH_MODULE_GET_CLASS (bare)->forward_many (GTORCH_MODULE (bare), inputs,
                                                            layer_samples[i].n_inputs, &error);
        }
      else if (GTORCH_IS_LOSS (bare))
        y = GTORCH_LOSS_GET_CLASS (bare)->compute (GTORCH_LOSS (bare), x, x, &error);
      else
        y = GTORCH_MODULE_GET_CLASS (bare)->forward (GTORCH_MODULE (bare), x, &error);
      g_assert_true ((y == NULL) == (error != NULL));
      text = gtorch_module_to_string (GTORCH_MODULE (bare));
      g_assert_nonnull (text);
      if (is_whole)
        continue;
      g_assert_null (y);
      g_assert_cmpstr (error->message, ==, reason->message);
      n++;
    }
  g_assert_cmpuint (n, >, 10);
}

static void
parameters_are_created_with_the_given_dtype (void)
{
  guint n = 0;

  for (guint i = 0; i < n_layer_samples; i++)
    {
      g_autoptr (GTorchModule) module = layer_samples[i].make (NULL);
      g_autoptr (GTorchDevice) device = NULL;
      g_autoptr (GTorchModule) other = NULL;
      g_autoptr (GError) error = NULL;
      GTorchDType dtype;
      gint64 features = 3;

      if (g_object_class_find_property (G_OBJECT_GET_CLASS (module), "device") == NULL)
        continue;
      say (&layer_samples[i]);
      g_object_get (module, "dtype", &dtype, "device", &device, NULL);
      g_assert_true (dtype == GTORCH_DTYPE_FLOAT32 || dtype == GTORCH_DTYPE_NONE);
      g_assert_true (gtorch_module_to (module, NULL, GTORCH_DTYPE_FLOAT64, NULL));
      if (dtype != GTORCH_DTYPE_NONE)
        {
          g_object_get (module, "dtype", &dtype, NULL);
          g_assert_cmpint (dtype, ==, GTORCH_DTYPE_FLOAT64);
        }
      n++;
      if (!GTORCH_IS_BATCH_NORM1D (module))
        continue;
      other = gtorch_module_new (GTORCH_TYPE_BATCH_NORM1D, &error, "num-features", features,
                                 "dtype", GTORCH_DTYPE_FLOAT16, NULL);
      g_assert_no_error (error);
      g_object_get (other, "dtype", &dtype, NULL);
      g_assert_cmpint (dtype, ==, GTORCH_DTYPE_FLOAT16);
      g_assert_null (gtorch_module_new (GTORCH_TYPE_BATCH_NORM1D, &error, "num-features", features,
                                        "dtype", GTORCH_DTYPE_INT32, NULL));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
    }
  g_assert_cmpuint (n, >, 10);
}

/* The input then has the values that the layer returns when it is not in place. */
static void
layers_in_place_write_to_their_input (void)
{
  const GType types[] = { GTORCH_TYPE_RELU,          GTORCH_TYPE_LEAKY_RELU,
                          GTORCH_TYPE_SILU,          GTORCH_TYPE_CELU,
                          GTORCH_TYPE_SELU,          GTORCH_TYPE_THRESHOLD,
                          GTORCH_TYPE_RRELU,         GTORCH_TYPE_DROPOUT,
                          GTORCH_TYPE_DROPOUT1D,     GTORCH_TYPE_DROPOUT3D,
                          GTORCH_TYPE_ALPHA_DROPOUT, GTORCH_TYPE_FEATURE_ALPHA_DROPOUT };
  const gint64 shape[] = { 4, 33, 1, 2 };

  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchModule) plain = gtorch_module_new (types[i], &error, NULL);
      g_autoptr (GTorchModule) inplace =
          gtorch_module_new (types[i], &error, "inplace", TRUE, NULL);
      const gsize n_dims = types[i] == GTORCH_TYPE_DROPOUT3D ? 4 : 2;
      g_autoptr (GTorchTensor) x = waves (shape, n_dims, 0);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) z = NULL;

      gtorch_manual_seed (3);
      y = gtorch_module_forward (plain, x, &error);
      gtorch_manual_seed (3);
      z = gtorch_module_forward (inplace, x, &error);
      g_assert_no_error (error);
      g_assert_true (z == x);
      g_assert_true (y != x);
      g_assert_cmpfloat_with_epsilon (weighed (y), weighed (x), 1e-12);
    }
}

/* A convolution with padding equals one without padding on an image that was padded by hand. */
static void
padding_modes_repeat_the_image (void)
{
  /* The source of each element of the padded image, for 3 rows and 4 columns; -1: zero. */
  const struct
  {
    GTorchPaddingMode mode;
    gint rows[7], columns[6];
  } cases[] = {
    { GTORCH_PADDING_MODE_ZEROS, { -1, -1, 0, 1, 2, -1, -1 }, { -1, 0, 1, 2, 3, -1 } },
    { GTORCH_PADDING_MODE_REFLECT, { 2, 1, 0, 1, 2, 1, 0 }, { 1, 0, 1, 2, 3, 2 } },
    { GTORCH_PADDING_MODE_REPLICATE, { 0, 0, 0, 1, 2, 2, 2 }, { 0, 0, 1, 2, 3, 3 } },
    { GTORCH_PADDING_MODE_CIRCULAR, { 1, 2, 0, 1, 2, 0, 1 }, { 3, 0, 1, 2, 3, 0 } },
  };
  const gint64 shape[] = { 1, 1, 3, 4 };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchModule) conv =
          gtorch_module_new (GTORCH_TYPE_CONV2D, &error, "in-channels", (gint64) 1, "out-channels",
                             (gint64) 2, "kernel-size", GTORCH_SIZE (3, 2), "padding",
                             GTORCH_SIZE (2, 1), "padding-mode", cases[i].mode, "dtype",
                             GTORCH_DTYPE_FLOAT64, NULL);
      g_autoptr (GTorchTensor) x = waves (shape, 4, 0);
      g_autoptr (GTorchTensor) padded = NULL;
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) z = NULL;
      gdouble values[42];

      g_assert_no_error (error);
      for (guint j = 0; j < 42; j++)
        {
          const gint row = cases[i].rows[j / 6], column = cases[i].columns[j % 6];

          values[j] = row < 0 || column < 0 ? 0 : sin (row * 4 + column + 1);
        }
      padded = gtorch_tensor_new_from_doubles (values, 42, GTORCH_SHAPE (1, 1, 7, 6),
                                               GTORCH_DTYPE_FLOAT64, NULL, NULL);
      y = gtorch_module_forward (conv, x, &error);
      g_assert_no_error (error);
      z = gtorch_conv2d (padded, test_parameter (conv, "weight"), test_parameter (conv, "bias"),
                         GTORCH_SHAPE (1), GTORCH_SHAPE (0), GTORCH_SHAPE (1), 1, &error);
      g_assert_no_error (error);
      g_assert_cmpint (gtorch_tensor_get_numel (y), ==, gtorch_tensor_get_numel (z));
      g_assert_cmpfloat_with_epsilon (weighed (y), weighed (z), 1e-12);
    }
}

/* With padding "same" the output is as large as the input; an even kernel has one more zero at the end. */
static void
same_padding_keeps_the_size (void)
{
  for (gint64 kernel = 1; kernel < 6; kernel++)
    for (gint64 dilation = 1; dilation < 3; dilation++)
      {
        const gint64 total = dilation * (kernel - 1), before = total / 2, shape[] = { 2, 1, 7, 9 };
        g_autoptr (GError) error = NULL;
        g_autoptr (GTorchModule) conv =
            gtorch_module_new (GTORCH_TYPE_CONV2D, &error, "in-channels", (gint64) 1,
                               "out-channels", (gint64) 1, "kernel-size", GTORCH_SIZE (1, kernel),
                               "dilation", GTORCH_SIZE (1, dilation), "padding-rule",
                               GTORCH_PADDING_RULE_SAME, "dtype", GTORCH_DTYPE_FLOAT64, NULL);
        g_autoptr (GTorchTensor) x = waves (shape, 4, 0);
        g_autoptr (GTorchTensor) zeros =
            gtorch_zeros (GTORCH_SHAPE (2, 1, 7, 20), GTORCH_DTYPE_FLOAT64, NULL, &error);
        g_autoptr (GTorchTensor) middle = gtorch_tensor_narrow (zeros, 3, before, 9, &error);
        g_autoptr (GTorchTensor) wide = NULL;
        g_autoptr (GTorchTensor) y = NULL;
        g_autoptr (GTorchTensor) z = NULL;

        g_assert_no_error (error);
        g_assert_true (gtorch_tensor_copy_inplace (middle, x, FALSE, NULL));
        wide = gtorch_tensor_narrow (zeros, 3, 0, 9 + total, &error);
        y = gtorch_module_forward (conv, x, &error);
        z = gtorch_conv2d (wide, test_parameter (conv, "weight"), test_parameter (conv, "bias"),
                           GTORCH_SHAPE (1), GTORCH_SHAPE (0), GTORCH_SHAPE (1, dilation), 1,
                           &error);
        g_assert_no_error (error);
        g_assert_cmpint (gtorch_tensor_get_numel (y), ==, 2 * 7 * 9);
        g_assert_cmpfloat_with_epsilon (weighed (y), weighed (z), 1e-12);
      }
}

/* Without a momentum the running mean is the mean over all batches. */
static void
batches_without_momentum_have_equal_weights (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) norm =
      gtorch_module_new (GTORCH_TYPE_BATCH_NORM1D, &error, "num-features", (gint64) 1, "momentum",
                         GTORCH_NONE_DOUBLE, NULL);
  const gdouble batches[][2] = { { 1, 3 }, { 5, 9 }, { -2, 0 } };
  gdouble sum = 0;

  g_assert_no_error (error);
  g_assert_true (gtorch_module_to (norm, NULL, GTORCH_DTYPE_FLOAT64, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (batches); i++)
    {
      g_autoptr (GTorchTensor) x =
          gtorch_tensor_new_from_doubles (batches[i], 2, GTORCH_SHAPE (2, 1), GTORCH_DTYPE_FLOAT64,
                                          NULL, NULL);
      g_autoptr (GTorchTensor) y = gtorch_module_forward (norm, x, &error);
      GTorchTensor *mean = test_buffer (norm, "running_mean");

      g_assert_no_error (error);
      sum += (batches[i][0] + batches[i][1]) / 2;
      g_assert_cmpfloat_with_epsilon (gtorch_tensor_item_double (mean, NULL), sum / (i + 1), 1e-14);
    }
}

/* With one of both, what has been learned of the data would be lost without a word. */
static void
running_statistics_come_in_pairs (void)
{
  static const gchar *const names[] = { "running_mean", "running_var" };
  const GType types[] = { GTORCH_TYPE_BATCH_NORM1D, GTORCH_TYPE_BATCH_NORM2D };
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (2, 3, 4, 4), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) line = gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_NONE, NULL, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (types) * 2; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchModule) norm =
          gtorch_module_new (types[i / 2], &error, "num-features", (gint64) 3, NULL);
      GTorchTensor *input = i / 2 == 0 ? line : x;
      g_autoptr (GTorchTensor) y = NULL;

      g_assert_no_error (error);
      gtorch_module_set_training (norm, FALSE);
      g_assert_true (gtorch_module_set_buffer (norm, names[i % 2], NULL, &error));
      g_assert_null (gtorch_module_forward (norm, input, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, "running_mean and running_var are needed"));
      g_clear_error (&error);
      g_assert_true (gtorch_module_set_buffer (norm, names[1 - i % 2], NULL, &error));
      y = gtorch_module_forward (norm, input, &error);
      g_assert_no_error (error);
    }
}

static void
layers_of_several_tensors_name_them (void)
{
  guint n = 0;

  for (guint i = 0; i < n_layer_samples; i++)
    {
      const LayerSample *sample = &layer_samples[i];
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchModule) module = sample->make (&error);
      g_autoptr (GTorchTensor) x = waves (sample->inputs[0].shape, sample->inputs[0].n_dims, 0);
      GTorchTensor *inputs[] = { x, x, x, x, x };

      if (sample->n_inputs == 1 || sample->has_target || GTORCH_IS_EMBEDDING_BAG (module)
          || g_str_has_prefix (sample->layer, "MaxUnpool"))
        continue; /* forward takes one tensor */
      say (sample);
      g_assert_null (gtorch_module_forward (module, x, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_assert_true (g_str_has_prefix (error->message, sample->layer));
      g_assert_nonnull (strstr (error->message, ": forward takes "));
      g_assert_true (g_str_has_suffix (error->message, "; 1 were given"));
      g_clear_error (&error);
      g_assert_null (gtorch_module_forward_many (module, inputs, sample->n_inputs + 1, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      n++;
    }
  g_assert_cmpuint (n, >, 10);
}

static void
typed_functions_call_layers_of_several_tensors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchBilinear) layer = gtorch_bilinear_new (3, 2, 4, &error);
  g_autoptr (GTorchTripletMarginLoss) loss = gtorch_triplet_margin_loss_new ();
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (5, 3), GTORCH_DTYPE_NONE, NULL, &error);
  g_autoptr (GTorchTensor) y = gtorch_ones (GTORCH_SHAPE (5, 2), GTORCH_DTYPE_NONE, NULL, &error);
  g_autoptr (GTorchTensor) z = gtorch_bilinear_forward (layer, x, y, &error);
  g_autoptr (GTorchTensor) value = NULL;

  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_numel (z), ==, 20);
  value = gtorch_triplet_margin_loss_forward (loss, x, x, x, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (gtorch_tensor_item_double (value, NULL), ==, 1);
  g_assert_null (gtorch_loss_forward (GTORCH_LOSS (loss), x, x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==,
                   "TripletMarginLoss: forward takes 3 tensors, anchor, positive and negative; 2 "
                   "were given");
}

#define ADD(name) g_test_add_func ("/GTorch/LayerRows/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (texts_are_pytorchs);
  ADD (values_are_pytorchs);
  ADD (gradients_are_differences);
  ADD (states_are_carried_over);
  ADD (bad_arguments_are_named);
  ADD (layers_of_several_tensors_name_them);
  ADD (typed_functions_call_layers_of_several_tensors);
  ADD (bare_layers_say_what_they_lack);
  ADD (parameters_are_created_with_the_given_dtype);
  ADD (layers_in_place_write_to_their_input);
  ADD (padding_modes_repeat_the_image);
  ADD (same_padding_keeps_the_size);
  ADD (batches_without_momentum_have_equal_weights);
  ADD (running_statistics_come_in_pairs);
  return g_test_run ();
}
