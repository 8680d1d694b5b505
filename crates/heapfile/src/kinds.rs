//! The numbers that stand for kinds of things.

/// Defines an enum whose numbers are part of the format.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $number,)*
        }

        impl $name {
            /// The kind with a number; `None` for those of later versions.
            #[must_use]
            pub fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// The kind of a section.
    Section {
        /// Properties of the snapshot: `key=value`.
        Meta = 1,
        /// Blocks and their references.
        Nodes = 2,
        /// Roots.
        Roots = 3,
        /// Functions on stacks.
        Frames = 4,
        /// Ephemerons and weak arrays.
        Ephemerons = 5,
        /// Facts about some blocks.
        Facts = 6,
        /// Names of functions, custom operations and modules.
        Symbols = 7,
        /// Names of the fields of modules.
        Definitions = 8,
        /// Blocks that a running recording has sampled.
        Sites = 9,
        /// Names of stacks.
        Stacks = 10,
        /// Exact totals, at the end of a complete snapshot.
        End = 15,
    }
}

kinds! {
    /// The kind of a root: what holds its target.
    RootKind {
        /// A module of the program; the target is its block. `a`: 0.
        Global = 1,
        /// A slot of a stack. `a`: the number of the frame plus 1, or 0; `b`: the number of the stack.
        Stack = 2,
        /// A variable that C code has registered.
        Registered = 3,
        /// A finaliser. `a`: 0 for its function, 1 for the value that waits for it.
        Finaliser = 4,
        /// The runtime's sampler.
        Sampler = 5,
        /// A module that was loaded while the program ran; the target is its block.
        Loaded = 6,
        /// A local variable of C code.
        Local = 7,
        /// Another root of the runtime.
        Other = 8,
    }
}

kinds! {
    /// The kind of a fact about a block.
    FactKind {
        /// A `Buffer.t`. `a`: bytes used; `b`: bytes allocated.
        Buffer = 1,
        /// Memory outside of the heap. `a`: bytes; `b`: its address, by which those that share it are known.
        External = 2,
        /// A `Hashtbl.t`. `a`: bindings; `b`: buckets.
        Hashtable = 3,
        /// The stack of a continuation. `a`: bytes; `b`: number of the innermost frame plus 1, or 0.
        Fiber = 4,
        /// Static data of the program from this block on, which is not in the heap. `a`: words from the block
        /// to the end of the last.
        Static = 5,
    }
}

kinds! {
    /// The kind of a symbol.
    SymbolKind {
        /// Code of a function.
        Code = 1,
        /// Operations of custom blocks.
        Operations = 2,
        /// The block of a module.
        Module = 3,
    }
}
