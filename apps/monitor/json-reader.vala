/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reads the characters and the simple values of a JSON text, plain or compressed by gzip, piece by piece. */

namespace GTorchMonitor {
    public errordomain ProfileError {
        INVALID
    }

    public class JsonReader : Object {
        const size_t MAX_NAME = 65536;          /* bytes */
        const uint64 MAX_TEXT = 4ULL << 30;     /* bytes */
        const uint REPLACEMENT = 0xfffd;
        protected const int END = -1;

        private InputStream stream;
        protected Cancellable? cancellable;
        private OutputStream? copy;
        private uint8[] buffer = new uint8[65536];
        private size_t at;
        private size_t n;
        private uint64 before; /* bytes before the buffer */
        private bool has_ended;

        /* What is kept of a text is mended instead of refused: it is cut, and gets other characters for what
         * is no UTF-8. */
        protected bool is_lenient;

        public JsonReader (InputStream stream, Cancellable? cancellable) {
            this.stream = stream;
            this.cancellable = cancellable;
        }

        /* Writes a copy of what is read, before it is read. */
        protected void begin (OutputStream? copy) throws Error {
            stream = unpack ();
            this.copy = copy;
            skip_space ();
            if (peek () == END)
                throw new ProfileError.INVALID (_("The trace is empty."));
        }

        private InputStream unpack () throws Error {
            var buffered = new BufferedInputStream (stream);

            while (buffered.get_available () < 2)
                if (buffered.fill (-1, cancellable) <= 0)
                    return buffered;
            unowned uint8[] head = buffered.peek_buffer ();
            if (head[0] != 0x1f || head[1] != 0x8b)
                return buffered;
            return new ConverterInputStream (buffered, new ZlibDecompressor (ZlibCompressorFormat.GZIP));
        }

        /* --- characters --- */

        private bool fill () throws Error {
            before += n;
            at = 0;
            n = 0;
            try {
                n = stream.read (buffer, cancellable);
            } catch (IOError.PARTIAL_INPUT error) {
                throw new ProfileError.INVALID (_("The trace is compressed, and its end is missing."));
            }
            has_ended = n == 0;
            if (copy != null && n > 0)
                copy.write_all (buffer[0:n], null, cancellable);
            if (before + n > MAX_TEXT)
                throw new ProfileError.INVALID (_("The trace is larger than %s."),
                                                format_size (MAX_TEXT, FormatSizeFlags.IEC_UNITS));
            return n > 0;
        }

        protected int peek () throws Error {
            return at < n || fill () ? buffer[at] : END;
        }

        protected int next () throws Error {
            var c = peek ();

            if (c != END)
                at++;
            return c;
        }

        protected bool accept (char c) throws Error {
            if (peek () != c)
                return false;
            at++;
            return true;
        }

        protected void skip_space () throws Error {
            for (;;) {
                var c = peek ();

                if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
                    return;
                at++;
            }
        }

        protected ProfileError wrong () {
            if (has_ended)
                return new ProfileError.INVALID (_("The trace ends at byte %s, in the middle of a value."),
                                                 (before + at).to_string ());
            return new ProfileError.INVALID (_("Byte %s of the text is no JSON."),
                                             (before + at).to_string ());
        }

        protected void expect (char c) throws Error {
            if (!accept (c))
                throw wrong ();
        }

        /* --- values without others in them --- */

        private void keep (StringBuilder? text, char c) throws Error {
            if (text == null || is_lenient && text.len >= MAX_NAME)
                return;
            if (text.len >= MAX_NAME)
                throw new ProfileError.INVALID (_("The trace has a name of more than %s."),
                                                format_size (MAX_NAME, FormatSizeFlags.IEC_UNITS));
            text.append_c (c);
        }

        private uint read_unit () throws Error {
            uint unit = 0;

            for (var i = 0; i < 4; i++) {
                var digit = ((char) peek ()).xdigit_value ();

                if (peek () > 0x7f || digit < 0)
                    throw wrong ();
                unit = unit * 16 + digit;
                at++;
            }
            return unit;
        }

        private void keep_character (StringBuilder? text, uint unit) throws Error {
            var bytes = ((unichar) unit).to_string ();

            for (var i = 0; i < bytes.length; i++)
                keep (text, bytes[i]);
        }

        /* Behind \u. JSON may have what texts here cannot: a zero, at which they end, and half of a pair of
         * surrogates. There is the character for what cannot be shown in its place. */
        private void read_unicode (StringBuilder? text) throws Error {
            var unit = read_unit ();

            while (unit >= 0xd800 && unit < 0xdc00) {
                if (!accept ('\\')) {
                    keep_character (text, REPLACEMENT);
                    return;
                }
                if (!accept ('u')) {
                    keep_character (text, REPLACEMENT);
                    read_letter (text);
                    return;
                }
                var low = read_unit ();
                if (low >= 0xdc00 && low < 0xe000) {
                    keep_character (text, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
                    return;
                }
                keep_character (text, REPLACEMENT);
                unit = low;
            }
            keep_character (text, unit == 0 || unit >= 0xdc00 && unit < 0xe000 ? REPLACEMENT : unit);
        }

        private void read_letter (StringBuilder? text) throws Error {
            const string LETTERS = "\"\\/bfnrt";
            const string MEANINGS = "\"\\/\b\f\n\r\t";

            for (var i = 0; i < LETTERS.length; i++)
                if (accept (LETTERS[i])) {
                    keep (text, MEANINGS[i]);
                    return;
                }
            throw wrong ();
        }

        private void read_escape (StringBuilder? text) throws Error {
            if (accept ('u'))
                read_unicode (text);
            else
                read_letter (text);
        }

        /* At the opening quote. A text that is not kept is not looked at as UTF-8. */
        protected void read_string (StringBuilder? text) throws Error {
            expect ('"');
            while (!accept ('"')) {
                var c = next ();

                if (c == '\\')
                    read_escape (text);
                else if (c < 0x20) /* or the end */
                    throw wrong ();
                else
                    keep (text, (char) c);
            }
            if (text == null || text.str.validate (text.len))
                return;
            if (is_lenient)
                text.assign (text.str.make_valid (text.len));
            else
                throw new ProfileError.INVALID (_("The trace has a name that is no UTF-8."));
        }

        private void read_digits (StringBuilder? text) throws Error {
            var c = peek ();

            if (c < '0' || c > '9')
                throw wrong ();
            for (; c >= '0' && c <= '9'; c = peek ()) {
                keep (text, (char) c);
                at++;
            }
        }

        private void read_number (StringBuilder? text) throws Error {
            if (accept ('-'))
                keep (text, '-');
            if (accept ('0'))
                keep (text, '0');
            else
                read_digits (text);
            if (accept ('.')) {
                keep (text, '.');
                read_digits (text);
            }
            if (peek () == 'e' || peek () == 'E') {
                keep (text, (char) next ());
                if (peek () == '+' || peek () == '-')
                    keep (text, (char) next ());
                read_digits (text);
            }
        }

        private void read_word (string word) throws Error {
            for (var i = 0; i < word.length; i++)
                expect (word[i]);
        }

        /* Returns the first character, which tells the kind. */
        protected int read_scalar (StringBuilder? text) throws Error {
            var c = peek ();

            if (c == '"')
                read_string (text);
            else if (c == 't')
                read_word ("true");
            else if (c == 'f')
                read_word ("false");
            else if (c == 'n')
                read_word ("null");
            else
                read_number (text);
            return c;
        }
    }
}
