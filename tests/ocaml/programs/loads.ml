(* Loads the module whose file is its third argument, which does all the work. *)

let () = Dynlink.loadfile Sys.argv.(3)
