import { code, codes, list } from './markdown';
import { TEXTS } from './workflow-texts';

/** Each resource's attention reasons with the remedies that its page in the Temporal UI shows. */
export function remedyLists() {
  return Object.fromEntries(
    Object.entries(TEXTS).map(([kind, { remedies }]) => {
      const items = Object.entries(remedies).map(
        ([reason, remedy]) => `${code(reason)}: ${remedy}`,
      );
      return [`${kind}-remedies`, list(items)];
    }),
  );
}

/** Updates of each resource, and the states in which operators can send them. */
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

/** The page describes the input once, since it is the same for all updates. */
function withoutInput(description: string): string {
  return description.replace(/:? \{[^}]*\}/, '');
}
