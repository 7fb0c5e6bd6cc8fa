// The text editor of a cell: CodeMirror, loaded with the first cell that is edited. It lives in a
// shadow root, because there its styles are style sheets that a strict policy allows.
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { linter, type Diagnostic } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { understand } from "../source/cell_code.ts";
import { completionsAt, type Known } from "../source/complete.ts";

export interface EditorOptions {
  text: string;
  isCode: boolean;
  label: string;
  known(): Known;
  changed(text: string): void;
  finish(how: "leave" | "run" | "run and go on" | "run and insert"): void;
}

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "transparent", fontSize: "13.5px" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--ink)", padding: "4px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, .cm-content ::selection": {
    backgroundColor: "var(--accent-soft)",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--panel)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
  },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--bg)",
  },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "14em" },
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal" },
});

function codeExtensions(options: EditorOptions): Extension[] {
  const lint = (view: EditorView): Diagnostic[] => {
    const result = understand(view.state.doc.toString());
    if (result.ok) return [];
    const { from, to, message } = result.error;
    const size = view.state.doc.length;
    const begin = Math.min(from, size);
    return [{ from: begin, to: Math.min(Math.max(to, begin), size), severity: "error", message }];
  };
  const complete = ({ state, pos }: { state: EditorState; pos: number }) => {
    const choices = completionsAt(state.doc.toString(), pos, options.known());
    if (!choices || choices.options.length === 0) return null;
    return { ...choices, validFor: /^\w*$/ };
  };
  return [linter(lint, { delay: 300 }), autocompletion({ override: [complete], icons: false })];
}

export function openEditor(parent: HTMLElement, options: EditorOptions): () => void {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  root.replaceChildren();
  const finish = (how: Parameters<EditorOptions["finish"]>[0]) => () => {
    options.finish(how);
    return true;
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: options.text,
      selection: { anchor: options.text.length },
      extensions: [
        keymap.of([
          { key: "Shift-Enter", run: finish("run and go on") },
          { key: "Ctrl-Enter", mac: "Cmd-Enter", run: finish("run") },
          { key: "Alt-Enter", run: finish("run and insert") },
        ]),
        history(),
        ...(options.isCode ? codeExtensions(options) : [placeholder("Text, with Markdown")]),
        keymap.of([
          ...completionKeymap, // Escape closes a list first
          { key: "Escape", run: finish("leave") },
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": options.label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) options.changed(update.state.doc.toString());
        }),
        theme,
      ],
    }),
  });
  view.focus();
  return () => view.destroy();
}
