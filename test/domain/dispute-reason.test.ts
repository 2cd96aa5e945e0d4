import { explainReason } from '../../src/domain/dispute/reason';

test.each([
  ['fraudulent', 'The customer says that somebody else paid (fraudulent)'],
  ['4853', 'The customer disputes the purchase (4853)'],
  ['X9', 'The bank’s code X9'],
  [null, 'The bank gave no reason'],
])('the reason %s is "%s"', (code, words) => {
  expect(explainReason(code)).toBe(words);
});
