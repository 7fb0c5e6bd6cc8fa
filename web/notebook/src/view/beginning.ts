// How much of a long text is shown at first, and with every wish for more.
export const mostLetters = 100_000;

// Up to the end of a line, when one is near.
export function beginning(text: string, letters: number): string {
  if (text.length <= letters) return text;
  const end = text.lastIndexOf("\n", letters);
  return text.slice(0, end > letters / 2 ? end : letters);
}
