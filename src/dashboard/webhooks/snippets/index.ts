import { GO } from './go';
import { JAVA } from './java';
import { JAVASCRIPT } from './javascript';
import { PHP } from './php';
import { PYTHON } from './python';

/** Code that verifies a delivery, whole, in each of five languages. */
export const SNIPPETS = [
  { language: 'JavaScript', code: JAVASCRIPT },
  { language: 'Python', code: PYTHON },
  { language: 'PHP', code: PHP },
  { language: 'Go', code: GO },
  { language: 'Java', code: JAVA },
] as const;
