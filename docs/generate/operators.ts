import { code, codes, list } from './markdown';
import { TEXTS } from './workflow-texts';

/** Every mark of each resource with the words that its page in the Temporal UI shows. */
export function markLists() {
  return Object.fromEntries(
    Object.entries(TEXTS).map(([kind, { cures }]) => {
      const items = Object.entries(cures).map(([mark, cure]) => `${code(mark)}: ${cure}`);
      return [`${kind}-marks`, list(items)];
    }),
  );
}

/** What operators can do to each resource, and in which states. */
export function updateLists() {
  return Object.fromEntries(
    Object.entries(TEXTS).map(([kind, { acts, descriptions }]) => {
      const items = Object.entries(acts).map(([name, { from }]) => {
        const description = withoutInput(descriptions[name] ?? '');
        return `${code(name)} (while ${codes(from)}): ${description}`;
      });
      return [`${kind}-updates`, list(items)];
    }),
  );
}

/** The input is the same for all, and told once beside the list. */
function withoutInput(description: string): string {
  return description.replace(/:? \{[^}]*\}/, '');
}
