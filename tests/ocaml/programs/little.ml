(* Does next to nothing: the garbage collector has no work. *)

let () = print_endline "little"
