// What can be opened: models that came with the page, a file, a notebook, a lesson.
import { useEffect, useRef, useState } from "preact/hooks";
import { builtInNames, smallModels } from "../notebook/models.ts";
import * as opening from "../notebook/opening.ts";
import { hasPrevious } from "../storage/store.ts";
import { lessons } from "../notebook/lessons.ts";

export function OpenMenu({ close }: { close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const shown = builtInNames.filter((name) => name.includes(query.toLowerCase()));
  const pick = (act: () => void) => () => {
    act();
    dialog.current?.close();
  };
  return (
    <dialog ref={dialog} onClose={close} aria-label="Open" class="open">
      <h2>Open</h2>
      <label class="file">
        A file: a model (.pt2, .json, .json.gz, .lathe), a bundle of lathe.capture (.zip) or a
        notebook (.ipynb)
        <input
          type="file"
          accept=".pt2,.json,.gz,.lathe,.zip,.ipynb"
          onChange={(event) => {
            const { files } = event.currentTarget;
            if (files && files.length > 0) pick(() => void opening.openFiles(files))();
          }}
        />
      </label>
      <p class="soft">It stays on this machine. Files can also be dropped anywhere on the page.</p>
      {hasPrevious.value && (
        <p>
          <button onClick={pick(() => void opening.openPrevious())}>
            The notebook that was open before
          </button>
        </p>
      )}
      <h3>Lessons</h3>
      <p>
        {lessons.map(({ name, title }) => (
          <button key={name} onClick={pick(() => void opening.openLesson(name))}>
            {title}
          </button>
        ))}
      </p>
      <h3>Models that came with the page</h3>
      <input
        type="search"
        placeholder="find a model"
        aria-label="Find a model"
        value={query}
        onInput={(event) => setQuery(event.currentTarget.value)}
      />
      <ul class="models">
        {shown.map((name) => (
          <li key={name}>
            <button onClick={pick(() => void opening.openModel(name))}>
              {name}
              {smallModels.includes(name) ? " · small" : ""}
            </button>
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p>No model's name holds “{query}”.</p>}
      <button onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}
