// The language of cells, one statement: `name = call("text", other, key=value)`. A line that starts
// with # is a comment. Errors know their place.

export interface Span {
  from: number;
  to: number;
}
export interface SourceError extends Span {
  message: string;
}
export type Value = Span &
  (
    | { kind: "text"; value: string }
    | { kind: "number"; value: number }
    | { kind: "name"; value: string }
  );
export interface Argument {
  key: (Span & { value: string }) | null;
  value: Value;
}
export interface Statement {
  name: (Span & { value: string }) | null;
  call: Span & { value: string };
  args: Argument[];
}
export type Parsed = { ok: true; statement: Statement } | { ok: false; error: SourceError };

type Token = Span & { kind: "name" | "number" | "text" | "mark" | "end"; value: string };

class Failure extends Error {
  constructor(readonly error: SourceError) {
    super(error.message);
  }
}

function fail(span: Span, message: string): never {
  throw new Failure({ from: span.from, to: span.to, message });
}

const tokenRules: [Token["kind"] | "space", RegExp][] = [
  ["space", /(?:\s|#[^\n]*)+/y],
  ["name", /[A-Za-z_][A-Za-z0-9_]*/y],
  ["number", /-?\d+(?:\.\d+)?/y],
  ["text", /"(?:[^"\\\n]|\\.)*"/y],
  ["mark", /[=(),]/y],
];

function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < source.length) {
    const from = at;
    for (const [kind, rule] of tokenRules) {
      rule.lastIndex = at;
      const match = rule.exec(source);
      if (!match) continue;
      at += match[0].length;
      if (kind !== "space") tokens.push({ kind, value: match[0], from, to: at });
      break;
    }
    if (at > from) continue;
    if (source[at] === '"') fail({ from: at, to: source.length }, "the quote never ends");
    fail({ from: at, to: at + 1 }, `unexpected '${source[at]}'`);
  }
  tokens.push({ kind: "end", value: "", from: source.length, to: source.length });
  return tokens;
}

const shown = (token: Token) => (token.kind === "end" ? "the end" : `'${token.value}'`);

export function unquote(text: string): string {
  return text.slice(1, -1).replace(/\\(.)/g, "$1");
}
export function quote(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

class Parser {
  private at = 0;
  constructor(private readonly tokens: Token[]) {}

  statement(): Statement {
    const first = this.expect("name", 'a statement such as block = import("attention_block")');
    let name: Statement["name"] = null;
    let call = first;
    if (this.takes("=")) {
      name = first;
      call = this.expect("name", "import, passes, bench or bundle");
    }
    this.mark("(", `after ${call.value}`);
    const args: Argument[] = [];
    while (!this.takes(")")) {
      args.push(this.argument());
      if (this.takes(")")) break;
      this.mark(",", "between arguments, or ')'");
    }
    const rest = this.peek();
    if (rest.kind !== "end") fail(rest, `expected the end, got ${shown(rest)}`);
    return { name, call, args };
  }

  private argument(): Argument {
    const token = this.peek();
    if (token.kind === "name" && this.tokens[this.at + 1]?.value === "=") {
      this.at += 2;
      return { key: token, value: this.value() };
    }
    return { key: null, value: this.value() };
  }

  private value(): Value {
    const token = this.peek();
    ++this.at;
    const { from, to } = token;
    if (token.kind === "text") return { kind: "text", value: unquote(token.value), from, to };
    if (token.kind === "number") return { kind: "number", value: Number(token.value), from, to };
    if (token.kind === "name") return { kind: "name", value: token.value, from, to };
    return fail(token, `expected a name, a number or a text in quotes, got ${shown(token)}`);
  }

  private peek(): Token {
    return this.tokens[Math.min(this.at, this.tokens.length - 1)] as Token;
  }

  private takes(mark: string): boolean {
    const token = this.peek();
    if (token.kind !== "mark" || token.value !== mark) return false;
    ++this.at;
    return true;
  }

  private mark(mark: string, where: string): void {
    if (!this.takes(mark))
      fail(this.peek(), `expected '${mark}' ${where}, got ${shown(this.peek())}`);
  }

  private expect(kind: Token["kind"], what: string): Token {
    const token = this.peek();
    if (token.kind !== kind) fail(token, `expected ${what}, got ${shown(token)}`);
    ++this.at;
    return token;
  }
}

export function parse(source: string): Parsed {
  try {
    return { ok: true, statement: new Parser(tokenize(source)).statement() };
  } catch (error) {
    if (error instanceof Failure) return { ok: false, error: error.error };
    throw error;
  }
}
