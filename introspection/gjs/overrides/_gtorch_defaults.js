// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Arguments of functions for data, files, texts and images that may be left out, or be given by name:
//
//     const image = GTorch.image_load_file(file, {mode: GTorch.ImageMode.GRAY});
//     const ids = tokenizer.encode('a text');
//
// The rows of operations and layers have their own defaults; those here are Python's.

/* exported setup */

const convert = imports.overrides._gtorch_convert;

let GTorch;

const READ = {map: false, max_bytes: 0, cancellable: null};
const IMAGE = {mode: 'ImageMode.UNCHANGED', apply_orientation: false, max_pixels: 0, cancellable: null};
const LOADED = {map: false, device: null, cancellable: null, progress: null};
const SAVED = {cancellable: null, progress: null};
const STEP = {step: -1, wall_time: 'NONE_DOUBLE'};
const RANDOM = {replacement: false, num_samples: -1, generator: null};

const FUNCTIONS = {
    image_encode: {quality: 75},
    image_load: IMAGE,
    image_load_bytes: IMAGE,
    image_load_file: IMAGE,
    image_save_file: {quality: 75, cancellable: null},
    npy_load: READ,
    npy_load_file: READ,
    npy_save: {cancellable: null},
    npy_save_file: {cancellable: null},
    npz_load: READ,
    npz_load_bytes: READ,
    npz_load_file: READ,
    npz_save: {cancellable: null},
    npz_save_file: {cancellable: null},
    random_split: {generator: null},
    random_split_fractions: {generator: null},
    safetensors_load_file_lists: LOADED,
    safetensors_load_lists: LOADED,
    safetensors_save_file_lists: SAVED,
    safetensors_save_lists: SAVED,
};

// Of classes: static functions and constructors, and methods.
const STATICS = {
    BatchSampler: {new: {drop_last: false}},
    CSVReader: {new_for_file: {cancellable: null}},
    CheckpointFile: {load: READ, load_bytes: READ, load_file: READ},
    DataLoader: {new: {batch_size: 1, shuffle: false}},
    DistributedSampler: {new: {shuffle: true, seed: 0, drop_last: false}},
    EventWriter: {new: {suffix: null}},
    Fetcher: {new: {batched: true}},
    ImageFolder: {new: {transform: null, mode: 'ImageMode.RGB', cancellable: null}},
    RandomSampler: {new: RANDOM},
    Sample: {collate_with: {alloc: null}},
    SubsetRandomSampler: {new: {generator: null}},
    Tokenizer: {
        load: {cancellable: null},
        load_file: {cancellable: null},
        train_bpe: {min_frequency: 2, special_tokens: null, add_prefix_space: false, cancellable: null},
    },
    WeightedRandomSampler: {new: {replacement: true, generator: null}},
};
const METHODS = {
    ArrowReader: {read_table: {cancellable: null}},
    CSVReader: {
        read_table: {max_rows: 0, cancellable: null},
        read_tensor: {max_rows: 0, cancellable: null},
    },
    DataLoaderIter: {next: {cancellable: null}},
    Dataset: {get_batch: {cancellable: null}, get_item: {cancellable: null}},
    EventWriter: {
        add_histogram: STEP, add_image: {dataformats: 'CHW', ...STEP}, add_scalar: STEP, add_text: STEP,
    },
    IterableDataset: {iterate: {worker: 0, n_workers: 1}},
    ProfileList: {
        key_averages: {group_by_input_shapes: false, group_by_stack_n: 0},
        table: {
            sort_by: null, row_limit: 100, max_src_column_width: 75, max_name_column_width: 55,
            max_shapes_column_width: 80, header: null, top_level_events_only: false, time_unit: null,
        },
    },
    Profiler: {
        export_chrome_trace: {cancellable: null},
        export_memory_timeline: {device: null, cancellable: null},
        export_stacks: {metric: 'self_cpu_time_total', cancellable: null},
        key_averages: {group_by_input_shape: false, group_by_stack_n: 0},
    },
    ProgressBar: {update: {text: null}},
    Sample: {to_device: {non_blocking: false}},
    SampleSource: {next: {cancellable: null}},
    Tokenizer: {
        decode: {skip_special_tokens: true},
        decode_bytes: {skip_special_tokens: true},
        enable_padding: {
            length: 0, multiple: 0, left: false, pad_id: 0, pad_type_id: 0, pad_token: '[PAD]',
        },
        enable_truncation: {strategy: 'Truncation.LONGEST_FIRST', left: false},
        encode: {pair: null, add_special_tokens: true},
        encode_batch: {pairs: null, add_special_tokens: true},
        save: {cancellable: null},
    },
};

// The value of a default: those of the namespace are written by their names.
function valueOf(value) {
    if (typeof value !== 'string' || !/^(ImageMode|Truncation)\.|^NONE_DOUBLE$/.test(value))
        return value;
    return value.split('.').reduce((owner, key) => owner[key], GTorch);
}

function counted(name, func, names, defaults) {
    const args = names.map(key => ({name: key, required: !Object.hasOwn(defaults, key)}));
    const values = Object.fromEntries(Object.entries(defaults).map(([key, value]) => [key, valueOf(value)]));
    const wrapper = function (...given) {
        if (given.length === names.length && !convert.isOptions(given.at(-1)))
            return func.apply(this, given);
        const found = {...values, ...convert.bind(name, args, given)};
        return func.apply(this, names.map(key => found[key]));
    };
    Object.defineProperty(wrapper, 'length', {value: names.length, configurable: true});
    return wrapper;
}

function replace(owner, functions, table, prefix = '') {
    for (const [name, defaults] of Object.entries(functions)) {
        const {names} = table[name];
        const whole = /^new/.test(name) ? prefix + name : name;
        const own = Object.fromEntries(Object.entries(defaults).filter(([key]) => names.includes(key)));
        owner[name] = counted(whole, owner[name], names, own);
    }
}

function setup(namespace, {functions, owners}) {
    GTorch = namespace;
    replace(GTorch, FUNCTIONS, functions);
    for (const [name, found] of Object.entries(STATICS))
        replace(GTorch[name], found, owners[name].statics, `${name}.`);
    for (const [name, found] of Object.entries(METHODS))
        replace(GTorch[name].prototype, found, owners[name].methods);
}
