import type { Texts } from './texts';

export const nl: Texts = {
  name: 'Nederlands',
  frame: {
    language: 'Taal',
    secure: 'Beveiligde betaalpagina.',
    secureOnce: 'Beveiligde betaalpagina. Deze link werkt één keer.',
    backToShop: 'Terug naar de winkel',
    backTo: 'Terug naar {merchant}',
    reference: 'Kenmerk',
  },
  pay: {
    sandbox: 'Sandbox: dit is een test, er wordt geen geld overgemaakt.',
    title: '{amount} betalen aan {merchant}',
    summary: '{amount} aan {merchant}',
    amount: 'Te betalen bedrag',
    method: 'Betalen met',
    payBy: 'Te betalen voor',
    cancel: 'Betaling annuleren',
    cancelBusy: 'Bezig met annuleren…',
  },
  method: {
    continue: 'Verder naar {method}',
    opening: '{method} wordt geopend',
    openingBusy: '{method} wordt geopend…',
  },
  bank: {
    name: 'uw bank',
    continue: 'Verder naar uw bank',
    opening: 'Uw bank wordt geopend',
    openingBusy: 'Uw bank wordt geopend…',
  },
  wait: {
    progress: 'Even geduld',
    opening: 'De bank bereidt uw betaling voor. U wordt zo doorgestuurd.',
    openingLater: 'Dit duurt langer dan gewoonlijk. Blijf op deze pagina.',
    title: 'Wachten op het antwoord van de bank',
    answer: 'Zodra de bank antwoordt, gaat deze pagina vanzelf verder.',
    answerLater:
      'Nog geen antwoord. Als u niet hebt betaald, ga dan terug naar de bank of annuleer de ' +
      'betaling.',
    backToBank: 'Terug naar de bank',
  },
  transfer: {
    show: 'Bankgegevens tonen',
    title: 'Betalen met een overboeking',
    holder: 'Naam van de rekeninghouder',
    reference: 'Betalingskenmerk',
    copy: 'Kopiëren',
    exactly:
      'Maak precies dit bedrag over en vermeld het betalingskenmerk. Zonder kenmerk kan de ' +
      'winkel niet zien wat u hebt betaald.',
    confirmed:
      'Uw betaling is bevestigd zodra de overboeking binnenkomt, meestal op de volgende werkdag. ' +
      'U kunt deze pagina sluiten: wij laten het de winkel weten.',
    sent: 'Als u de overboeking hebt verstuurd, annuleer de betaling dan niet meer.',
  },
  outcome: {
    open: 'Deze betaling staat open',
    paid: 'U hebt betaald',
    failed: 'De betaling is mislukt',
    cancelled: 'De betaling is geannuleerd',
    expired: 'Deze betaling is verlopen',
  },
  notice: {
    unknown: {
      title: 'Deze betaling bestaat niet',
      text: 'De link is misschien niet volledig. Ga terug naar de winkel en begin opnieuw met betalen.',
    },
    taken: {
      title: 'Deze link is al gebruikt',
      text:
        'Een betaallink werkt één keer, in de browser die hem het eerst heeft geopend. Ga daar ' +
        'verder, of ga terug naar de winkel en begin opnieuw.',
    },
    expired: {
      title: 'Deze betaallink is verlopen',
      text:
        'U kunt hier niet meer betalen. Hebt u net betaald, betaal dan niet nog een keer: de bank ' +
        'informeert de winkel. Ga anders terug naar de winkel en begin opnieuw.',
    },
    ended: {
      title: 'Deze betaling is afgesloten',
      text: 'De link werkt niet meer. Ga terug naar de winkel om uw bestelling te bekijken.',
    },
    foreign: {
      title: 'Dat verzoek kwam niet van deze pagina',
      text: 'Open de betaallink opnieuw en gebruik de knoppen op de pagina.',
    },
    done: {
      title: 'U kunt deze pagina sluiten',
      text:
        'De bank informeert de winkel vanzelf. Bij uw bestelling in de winkel ziet u of die is ' +
        'betaald.',
    },
    trouble: {
      title: 'Deze pagina is even niet beschikbaar',
      text: 'De storing ligt bij ons. Probeer het zo nog eens; u kunt niet dubbel betalen.',
    },
  },
  crypto: {
    sandbox: 'Sandbox: dit is een test, verstuur geen echt geld.',
    sendExactly: 'Verstuur precies',
    stillToSend: 'Nog te versturen',
    qrCode: 'QR-code voor een wallet: {asset} op {network}',
    addressCode:
      'De code bevat alleen het adres: kies {asset} op {network} in uw wallet en vul het bedrag in.',
    amountCode: 'Code met het bedrag, die niet elke wallet leest',
    networkAddress: '{network}-adres',
    copyAmount: 'Bedrag kopiëren',
    copyAddress: 'Adres kopiëren',
    copied: 'Gekopieerd',
    amountCopied: 'Bedrag gekopieerd',
    addressCopied: 'Adres gekopieerd',
    selectToCopy:
      'Tik één keer op het bedrag of het adres om alles te selecteren en kopieer het daarna.',
    openWallet: 'Openen in wallet',
    onlyThisAsset:
      'Verstuur alleen {asset} via het netwerk {network}. Al het andere kan verloren gaan. De ' +
      'netwerkkosten komen er nog bij.',
    timeLeft: 'Resterende tijd',
    price: 'Prijs',
    amountDue: 'Verschuldigd bedrag',
    cameSoFar: 'Tot nu toe ontvangen',
    surplus: 'U hebt {amount} te veel verstuurd. De winkel ziet dit: vraag daar om terugbetaling.',
    playPayer: 'Betaling nabootsen',
    deposits: 'Ontvangen',
    confirmations: 'Bevestigingen',
    confirmationsOf: '{count} van {required} bevestigingen',
    confirmed: 'Bevestigd',
    heldLate: 'Te laat ontvangen: vraag het de winkel',
    held: 'Wordt gecontroleerd',
    rejected: 'Niet geaccepteerd: vraag het de winkel',
  },
  stage: {
    top_up: {
      title: 'Een deel van het bedrag is binnen',
      text:
        'Verstuur de rest naar hetzelfde adres voordat de tijd om is. U hoeft niet opnieuw te ' +
        'beginnen.',
    },
    confirming: {
      title: 'Uw betaling wordt bevestigd',
      text: 'U kunt deze pagina sluiten: wij informeren de winkel.',
    },
    received: {
      title: 'Betaling ontvangen',
      text: 'De winkel is geïnformeerd. U kunt deze pagina sluiten.',
    },
    short: {
      title: 'Er is te weinig op tijd ontvangen',
      text:
        'Verstuur niets meer. Uw geld is niet kwijt: neem contact op met de winkel, die het kan ' +
        'accepteren of terugbetalen.',
    },
    held: {
      title: 'Uw betaling wordt gecontroleerd',
      text: 'Betaal niet nog een keer. Een medewerker bekijkt het, en de winkel hoort de uitkomst.',
    },
    expired: {
      title: 'De tijd om te betalen is voorbij',
      text:
        'Verstuur niets meer naar dit adres. Hebt u net betaald, betaal dan niet nog een keer: er ' +
        'is niets kwijt en de winkel kan u helpen. Begin anders opnieuw in de winkel.',
    },
  },
};
