/** Count with its noun in English: `1 payment`, `2 payments`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
