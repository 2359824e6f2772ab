declare const GLOSSARY: [meaning: string, forms: string[]][];
/** An opaque identifier of the server's version. */
declare const SERVER: string;
/** The styles of the board in a notebook. */
declare const CSS_OF_BOARD: string;
