import { matching } from './shape';

/**
 * Identifier from outside: operators read it, so it cannot imitate what the service writes.
 * @see docs/connectors.md#callbacks
 */
export const IDENTIFIER = /^[A-Za-z0-9 ._:/@+(),'?%-]{1,200}$/;

/** Perhaps none, or with the place of a part: `REF#2.1`. */
export const BANK_REFERENCE = /^(?=.{0,200}$)[A-Za-z0-9 ._:/@+(),'?%-]*(?:#\d+\.\d+)?$/;

const CHARACTERS = "the characters A-Z a-z 0-9 . _ : / @ + - ( ) , ' ? % and space";
export const IDENTIFIER_FAULT = `must have 1 to 200 of ${CHARACTERS}`;
export const BANK_REFERENCE_FAULT = `must have at most 200 of ${CHARACTERS}`;

export const identifier = matching(IDENTIFIER, IDENTIFIER_FAULT);

export const bankReference = matching(BANK_REFERENCE, BANK_REFERENCE_FAULT, { optional: true });

/** Writes every other character, and `%`, as `%XX` of its UTF-8 bytes: no two texts become one. */
export function encodeIdentifier(text: string): string {
  return text.toWellFormed().replace(/[^A-Za-z0-9 ._:/@+(),'?-]/gu, (character) => {
    const encoded = encodeURIComponent(character);
    return encoded === character ? `%${toHex(character)}` : encoded;
  });
}

const toHex = (character: string) => character.charCodeAt(0).toString(16).toUpperCase();

/**
 * Reads the reference of a bank's answer: money that moved must not wait for a well-formed name.
 * One that stays too long is none: its instruction names the movement.
 */
export function readBankReference(answered: string): string {
  if (BANK_REFERENCE.test(answered)) return answered;
  const encoded = encodeIdentifier(answered);
  return BANK_REFERENCE.test(encoded) ? encoded : '';
}
