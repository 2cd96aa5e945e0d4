import fc from 'fast-check';
import {
  buildCreditorReference,
  findCreditorReference,
  isCreditorReference,
} from '../../src/domain/payment/creditor-reference';

const digits = fc.stringMatching(/^\d{16}$/);

test('references of other issuers have valid check digits', () => {
  // The examples of ISO 11649, of Finland's and of Belgium's banks.
  for (const reference of ['RF18539007547034', 'RF712348231', 'RF45G72UUR', 'RF332348236']) {
    expect(isCreditorReference(reference)).toBe(true);
    expect(isCreditorReference(reference.replace('RF', 'RE'))).toBe(false);
  }
});

test('a reference of the service is valid until a digit changes or two neighbors are swapped', () => {
  fc.assert(
    fc.property(digits, fc.nat(14), (text, at) => {
      const reference = buildCreditorReference(text);
      expect(reference).toMatch(/^RF\d{18}$/);
      expect(isCreditorReference(reference)).toBe(true);
      const place = at + 4;
      const [one = '', two = ''] = reference.slice(place, place + 2);
      const put = (pair: string) => reference.slice(0, place) + pair + reference.slice(place + 2);
      const changed = (Number(one) + 1) % 10;
      expect(isCreditorReference(put(`${changed}${two}`))).toBe(false);
      if (one !== two) expect(isCreditorReference(put(`${two}${one}`))).toBe(false);
    }),
  );
});

const REFERENCE = buildCreditorReference('5390075470345678');
const OTHER = buildCreditorReference('0000000000000001');
const grouped = REFERENCE.replace(/(.{4})(?=.)/g, '$1 ');

test.each([
  ['alone', [REFERENCE]],
  ['in groups', [grouped]],
  ['in lower case', [REFERENCE.toLowerCase()]],
  ['among words', [`Order 1042, ref. ${grouped}, Ada`]],
  ['with digits around it', [`1042 ${REFERENCE} 2026`]],
  ['twice', [`${REFERENCE} ${grouped}`, REFERENCE]],
  ['next to another one of the payer', [`RF18539007547034 ${REFERENCE}`]],
])('a reference is found %s', (_how, texts) => {
  expect(findCreditorReference(texts)).toBe(REFERENCE);
});

test('a reference is found wherever a bank cuts the text around it', () => {
  const text = `Payment for order 1042 ${grouped} thank you`;
  for (const width of [1, 7, 35]) {
    const lines = text.match(new RegExp(`.{1,${width}}`, 'g')) ?? [];
    expect(findCreditorReference([lines.map((line) => line.trim()).join('')])).toBe(REFERENCE);
  }
});

test.each([
  ['nothing', []],
  ['none', ['Thank you for the flowers']],
  ['one that is cut off', [REFERENCE.slice(0, -1)]],
  ['one with a wrong digit', [`${REFERENCE.slice(0, -1)}9`]],
  ['two of ours', [`${REFERENCE} ${OTHER}`]],
  ['two of ours in two places', [REFERENCE, OTHER]],
])('no reference is found in a text with %s', (_what, texts) => {
  expect(findCreditorReference(texts)).toBeNull();
});
