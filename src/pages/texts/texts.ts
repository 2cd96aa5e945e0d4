import type { en } from './en';

type Translated<T> = T extends string
  ? string
  : { readonly [Name in keyof T]: Translated<T[Name]> };

/** A language without one of the texts does not compile. */
export type Texts = Translated<typeof en>;

/** @throws Error for a placeholder without a value */
export function fillText(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (_match, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`No value for {${name}} in: ${text}`);
    return String(value);
  });
}
