import fc from 'fast-check';
import type { XmlElement, XmlTreeNode } from 'libxml2-wasm';
import { Document } from 'sepa';
import type { Address } from '../../../../connectors/sepa/debtor';
import { type PaymentFile, type Transfer, writePain001 } from '../../../../connectors/sepa/pain001';
import { parseMessage } from '../../../../src/statements/xml';

/** Compares our files with those of a library that others wrote. @see docs/sepa.md#files-to-the-bank */
const FORMAT = 'pain.001.001.09';
const MESSAGE = { versions: { 'pain.001.001': ['09'] }, expected: FORMAT };

type Fields = Record<string, unknown>;

function fillParty(target: object, role: 'debtor' | 'creditor', party: Omit<Transfer, 'amount'>) {
  const { name, iban, bic, address } = party;
  const fields: Fields = { Name: name, IBAN: iban, BIC: bic ?? '' };
  if (address !== null) {
    const { street, postal_code, town, country } = address;
    fields['Street'] = street;
    fields['City'] = [postal_code, town].filter((part) => part !== null).join(' ');
    fields['Country'] = country;
  }
  for (const [field, value] of Object.entries(fields)) {
    Object.assign(target, { [`${role}${field}`]: value });
  }
}

/** Writes the same file with `sepa`. Its IDs are set last, since it puts one before the other. */
function writeSecond({ id, created_at, execution_day, debtor, transfers }: PaymentFile): string {
  const document = new Document(FORMAT);
  Object.assign(document.grpHdr, { id, created: created_at, initiatorName: debtor.name });
  const batch = document.createPaymentInfo();
  // Noon, since the library writes the day of the local time.
  batch.requestedExecutionDate = new Date(`${execution_day}T12:00:00`);
  batch.batchBooking = false;
  fillParty(batch, 'debtor', { payout_id: '', text: null, ...debtor });
  document.addPaymentInfo(batch);
  batch.id = id;
  for (const transfer of transfers) {
    const payment = batch.createTransaction();
    const { payout_id, amount, text } = transfer;
    fillParty(payment, 'creditor', transfer);
    payment.amount = amount / 100;
    payment.remittanceInfo = text ?? '';
    payment.end2endId = payout_id.replaceAll('-', '');
    batch.addTransaction(payment);
    payment.id = payment.end2endId;
  }
  return document.toString();
}

function isElement(node: XmlTreeNode): node is XmlElement {
  return 'firstChild' in node;
}

/** Lists every text of a document with its path, in their order; addresses and the time apart. */
function listTexts(element: XmlElement, path = ''): string[] {
  const own = `${path}/${element.name}`;
  if (element.name === 'CreDtTm') return [];
  const texts: string[] = [];
  for (let child = element.firstChild; child !== null; child = child.next) {
    if (isElement(child)) texts.push(...listTexts(child, own));
  }
  const currency = element.attr('Ccy')?.value ?? '';
  const isAddress = element.name === 'PstlAdr';
  if (isAddress) return [`${own}=${describeAddress(element)}`];
  return texts.length > 0 ? texts : [`${own}=${element.content}${currency}`];
}

/** The library writes lines, and we the parts of an address. */
function describeAddress(element: XmlElement): string {
  const parts: Record<string, string[]> = {};
  for (let child = element.firstChild; child !== null; child = child.next) {
    if (isElement(child)) parts[child.name] = [...(parts[child.name] ?? []), child.content];
  }
  const { StrtNm = [], PstCd = [], TwnNm = [], AdrLine = [], Ctry = [] } = parts;
  const place = [...PstCd, ...TwnNm].join(' ');
  const lines = AdrLine.length > 0 ? AdrLine : [...StrtNm, place];
  return [...lines, ...Ctry].join(', ');
}

async function readTexts(xml: string): Promise<string[]> {
  const parsed = await parseMessage(Buffer.from(xml), MESSAGE);
  const texts = listTexts(parsed.root);
  parsed.dispose();
  return texts;
}

const character = fc.constantFrom(...'abcXYZ019 /?:().,+-'.split(''));
const text = (maxLength: number) =>
  fc
    .string({ unit: character, minLength: 1, maxLength })
    .map((value) => value.trim())
    .filter((value) => value !== '');
const address: fc.Arbitrary<Address> = fc.record({
  ...{ street: text(30), postal_code: fc.option(text(8), { nil: null }), town: text(20) },
  country: fc.constantFrom('DE', 'FR', 'NL'),
});
const fields = {
  name: text(70),
  account: fc.constantFrom(
    { iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
    { iban: 'DE89370400440532013000', bic: null },
    { iban: 'FR1420041010050500013M02606', bic: 'BNPAFRPP' },
  ),
  address: fc.option(address, { nil: null }),
};
const party = fc.record(fields).map(({ account, ...others }) => ({ ...others, ...account }));
const file: fc.Arbitrary<PaymentFile> = fc.record({
  id: fc.uuid().map((id) => id.replaceAll('-', '')),
  created_at: fc.constant(new Date('2026-11-26T14:00:00Z')),
  execution_day: fc.constantFrom('2026-11-26', '2027-01-04'),
  debtor: party,
  transfers: fc.array(
    fc
      .tuple(
        party,
        fc.record({
          ...{ payout_id: fc.uuid(), amount: fc.integer({ min: 1, max: 99_999_999_999 }) },
          // Without a text the library writes an empty element, which the schema refuses.
          text: text(140),
        }),
      )
      .map(([one, others]) => ({ ...one, ...others })),
    { minLength: 1, maxLength: 20 },
  ),
});

test('a library that others wrote makes the same file: each element, in the same order', async () => {
  await fc.assert(
    fc.asyncProperty(file, async (payments) => {
      const [ours, theirs] = [writePain001(payments), writeSecond(payments)];
      expect(await readTexts(ours)).toEqual(await readTexts(theirs));
    }),
    { numRuns: 200 },
  );
});
